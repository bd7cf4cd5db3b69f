-- KEYS lease · ARGV now, ttl. The fence outlives its holder.
local now = clock(ARGV[1])
local untl = redis.call('HGET', KEYS[1], 'until')
if untl and tonumber(untl) > now then return {'busy', untl} end
local fence = digits(redis.call('HINCRBY', KEYS[1], 'fence', 1))
untl = digits(later(now, ARGV[2]))
redis.call('HSET', KEYS[1], 'until', untl)
return {'held', fence, untl}
