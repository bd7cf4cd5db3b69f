-- KEYS head · ARGV now. Returns the current owner: node, epoch, until; nothing without an owner.
local head = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'until')
if head[1] and tonumber(head[3]) > clock(ARGV[1]) then return head end
return {}
