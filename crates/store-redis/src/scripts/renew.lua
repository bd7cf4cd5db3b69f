-- KEYS head · ARGV now, epoch, ttl, the append that must exist
local head = redis.call('HMGET', KEYS[1], 'epoch', 'node', 'last')
if head[1] ~= ARGV[2] then return {'fenced', head[1] or ''} end
if not head[2] then return {'released', head[1]} end
if tonumber(head[3]) < tonumber(ARGV[4]) then return {'lost', head[3]} end
local untl = digits(later(clock(ARGV[1]), ARGV[3]))
redis.call('HSET', KEYS[1], 'until', untl)
return {'ok', untl}
