-- KEYS index · ARGV now, most, record prefix. Only completed records are in the index.
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(clock(ARGV[1])), 'LIMIT', 0, ARGV[2])
for _, key in ipairs(old) do
  redis.call('UNLINK', ARGV[3] .. key)
  redis.call('ZREM', KEYS[1], key)
end
return #old
