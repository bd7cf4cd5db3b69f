-- KEYS record, index · ARGV token, answer, key
local kept = redis.call('HMGET', KEYS[1], 'token', 'until', 'late', 'expires')
if kept[1] ~= ARGV[1] or kept[2] == '' then return 0 end
redis.call('HSET', KEYS[1], 'answer', ARGV[2], 'until', '')
if kept[3] then redis.call('ZADD', KEYS[2], kept[4], ARGV[3]) end
return 1
