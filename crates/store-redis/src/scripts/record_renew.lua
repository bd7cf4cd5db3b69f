-- KEYS record, index · ARGV now, token, ttl, key, how long what is left behind is kept
local kept = redis.call('HMGET', KEYS[1], 'token', 'until', 'late', 'expires')
if kept[1] ~= ARGV[2] or kept[2] == '' then return 0 end
local untl = digits(later(clock(ARGV[1]), ARGV[3]))
redis.call('HSET', KEYS[1], 'until', untl)
if kept[3] then redis.call('ZADD', KEYS[2], left(kept[4], untl, ARGV[5]), ARGV[4]) end
return 1
