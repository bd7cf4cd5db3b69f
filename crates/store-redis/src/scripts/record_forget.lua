-- KEYS record, index · ARGV now, what, key. What has expired is left to the sweep.
local kept = redis.call('HMGET', KEYS[1], 'expires', 'until')
local now, done = clock(ARGV[1]), kept[2] == ''
local live = kept[1] and (tonumber(kept[1]) > now or (not done and tonumber(kept[2]) > now))
if not live then return 'absent' end
if done ~= (ARGV[2] == 'answer') then return 'otherwise' end
redis.call('UNLINK', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[3])
return 'gone'
