-- KEYS record · ARGV fence
local kept = redis.call('HMGET', KEYS[1], 'fence', 'until')
if kept[1] ~= ARGV[1] or not kept[2] then return 0 end
redis.call('UNLINK', KEYS[1])
return 1
