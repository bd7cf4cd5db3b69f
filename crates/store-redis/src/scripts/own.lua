-- KEYS head · ARGV now, node, ttl, batch prefix, snapshot prefix, staging slots
-- A first epoch is the time, so that a server which lost its data never issues one twice.
local now = clock(ARGV[1])
local head = redis.call('HMGET', KEYS[1], 'epoch', 'node', 'until', 'staging', 'last')
if head[2] and head[2] ~= ARGV[2] and tonumber(head[3]) > now then
  return {'held', head[2], digits(tonumber(head[3]) - now)}
end
local untl = digits(later(now, ARGV[3]))
local epoch = digits(head[1] and tonumber(head[1]) + 1 or math.floor(now / 1000))
if not head[1] then redis.call('UNLINK', KEYS[1]) end
redis.call('HSET', KEYS[1], 'epoch', epoch, 'node', ARGV[2], 'until', untl, 'last', head[5] or '0')
if head[1] then
  for slot = 1, tonumber(ARGV[6]) do redis.call('UNLINK', ARGV[4] .. head[1] .. '.' .. digits(slot)) end
end
if head[4] then
  redis.call('UNLINK', ARGV[5] .. head[4])
  redis.call('HDEL', KEYS[1], 'staging')
end
return {'ok', epoch, untl, head[5] or '0'}
