-- KEYS window · ARGV now, level, ttl. With the server's own clock it also expires by itself.
local now = clock(ARGV[1])
local kept = redis.call('HMGET', KEYS[1], 'level', 'until')
if kept[1] and tonumber(kept[2]) > now and tonumber(kept[1]) >= tonumber(ARGV[2]) then
  return {'wait', kept[1], kept[2]}
end
local untl = later(now, ARGV[3])
redis.call('HSET', KEYS[1], 'level', ARGV[2], 'until', digits(untl))
if ARGV[1] == '' then redis.call('PEXPIREAT', KEYS[1], digits(math.ceil(untl / 1000))) end
return {'ask', ARGV[2], digits(untl)}
