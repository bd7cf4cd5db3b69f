-- KEYS head · ARGV now. Answers who owns it now: node, epoch, until; nothing when nobody does.
local head = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'until')
if head[1] and tonumber(head[3]) > clock(ARGV[1]) then return head end
return {}
