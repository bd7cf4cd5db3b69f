-- KEYS record, index · ARGV fence, answer, key
local kept = redis.call('HMGET', KEYS[1], 'fence', 'until', 'expires')
if kept[1] ~= ARGV[1] or not kept[2] then return 0 end
redis.call('HSET', KEYS[1], 'answer', ARGV[2])
redis.call('HDEL', KEYS[1], 'until')
redis.call('ZADD', KEYS[2], kept[3], ARGV[3])
return 1
