-- KEYS record, index · ARGV token, key
local kept = redis.call('HMGET', KEYS[1], 'token', 'until')
if kept[1] ~= ARGV[1] or kept[2] == '' then return 0 end
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
return 1
