-- KEYS record · ARGV now, fence, ttl
local kept = redis.call('HMGET', KEYS[1], 'fence', 'until')
if kept[1] ~= ARGV[2] or not kept[2] then return 0 end
redis.call('HSET', KEYS[1], 'until', digits(later(clock(ARGV[1]), ARGV[3])))
return 1
