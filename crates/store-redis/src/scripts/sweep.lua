-- KEYS head, ops, res · ARGV epoch, batch prefix, append, then pairs of seq and note as they were seen
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return {'fenced', redis.call('HGET', KEYS[1], 'epoch') or ''}
end
local batch, gone = ARGV[2] .. ARGV[3], 0
for i = 4, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', batch, 'o:' .. ARGV[i])
    redis.call('HDEL', ARGV[2] .. string.match(ARGV[i + 1], '^%d+'), 'r:' .. ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    gone = gone + 1
  end
end
if gone > 0 then redis.call('HINCRBY', KEYS[1], 'operations', digits(-gone)) end
return {'ok', digits(gone)}
