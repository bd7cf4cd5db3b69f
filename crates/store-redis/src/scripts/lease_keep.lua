-- KEYS lease · ARGV now, fence, ttl; a ttl of 0 releases it
local now = clock(ARGV[1])
local kept = redis.call('HMGET', KEYS[1], 'fence', 'until')
if kept[1] ~= ARGV[2] or tonumber(kept[2]) <= now then return '' end
local untl = digits(later(now, ARGV[3]))
redis.call('HSET', KEYS[1], 'until', untl)
return untl
