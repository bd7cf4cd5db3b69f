-- KEYS record, index · ARGV now, fingerprint, lease, ttl, key. `until` is there while somebody works on it.
local now = clock(ARGV[1])
local kept = redis.call('HMGET', KEYS[1], 'print', 'expires', 'until')
local running = kept[3] and tonumber(kept[3]) > now
local taken = false
if kept[1] and (running or tonumber(kept[2]) > now) then
  if kept[1] ~= ARGV[2] then return {'conflict'} end
  if running then return {'processing', kept[3]} end
  if not kept[3] then return {'completed', redis.call('HGET', KEYS[1], 'answer')} end
  taken = true
end
local fence = digits(redis.call('HINCRBY', KEYS[1], 'fence', 1))
redis.call('HSET', KEYS[1], 'until', digits(later(now, ARGV[3])))
if taken then return {'yours', fence, '1'} end
redis.call('HSET', KEYS[1], 'print', ARGV[2], 'created', digits(now), 'expires', digits(later(now, ARGV[4])))
redis.call('HDEL', KEYS[1], 'answer')
redis.call('ZREM', KEYS[2], ARGV[5])
return {'yours', fence, '0'}
