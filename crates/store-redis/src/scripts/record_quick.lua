-- KEYS record, index · ARGV now, fingerprint, token, lease, ttl, holds, key. A key that nobody has claimed, which is what
-- most claims find, costs as few commands and words as it can; what follows is for the others.
if redis.call('HSETNX', KEYS[1], 'print', ARGV[2]) == 1 then
  local now = ARGV[1]
  if now == '' then
    local t = redis.call('TIME')
    now = t[1] * 1000000.0 + t[2]
  else
    now = now + 0.0
  end
  local expires = string.format('%.0f', math.min(now + ARGV[5], 9007199254740991))
  redis.call('HSET', KEYS[1], 'token', ARGV[3], 'created', string.format('%.0f', now), 'expires', expires,
    'until', string.format('%.0f', math.min(now + ARGV[4], 9007199254740991)), 'holds', ARGV[6])
  redis.call('ZADD', KEYS[2], expires, ARGV[7])
  return 'yours'
end
