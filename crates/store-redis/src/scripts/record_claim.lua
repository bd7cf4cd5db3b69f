-- KEYS record, index · ARGV now, fingerprint, token, lease, ttl, holds, key, how long what is left behind is kept.
-- A record is completed when its `until` is empty.
local now = clock(ARGV[1])
local kept = redis.call('HMGET', KEYS[1], 'print', 'expires', 'until', 'token', 'holds', 'late')
local done = kept[3] == ''
local running = kept[1] and not done and tonumber(kept[3]) > now
local untl = digits(later(now, ARGV[4]))
if running or (kept[1] and tonumber(kept[2]) > now) then
  if kept[1] ~= ARGV[2] then return {'conflict'} end
  if done then return {'completed', redis.call('HGET', KEYS[1], 'answer')} end
  local again = kept[4] == ARGV[3]
  if running and not again then return {'processing', kept[3]} end
  if kept[5] == '1' and not again then return {'unknown'} end
  redis.call('HSET', KEYS[1], 'token', ARGV[3], 'until', untl, 'holds', ARGV[6])
  if kept[6] then redis.call('ZADD', KEYS[2], left(kept[2], untl, ARGV[8]), ARGV[7]) end
  return {again and 'yours' or 'taken over'}
end
if kept[1] then redis.call('UNLINK', KEYS[1]) end
local expires = digits(later(now, ARGV[5]))
redis.call('HSET', KEYS[1], 'print', ARGV[2], 'token', ARGV[3], 'created', digits(now), 'expires', expires,
  'until', untl, 'holds', ARGV[6])
redis.call('ZADD', KEYS[2], expires, ARGV[7])
return {'yours'}
