-- KEYS head, res, archive queue · ARGV epoch, batch prefix, append, attempt prefix, then pairs of
-- seq and note as they were seen. What ended when the first in the queue did, or later, may be in it too: it stays
-- until it is archived. Ends never go back in time.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return {'fenced', redis.call('HGET', KEYS[1], 'epoch') or ''}
end
local batch, gone = ARGV[2] .. ARGV[3], 0
local first = redis.call('LINDEX', KEYS[3], 0)
local kept = first and tonumber(string.match(first, '^%d+ (%d+)')) or math.huge
for i = 5, #ARGV, 2 do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1]
    and tonumber(string.match(ARGV[i + 1], '^%d+ (%d+)')) < kept then
    redis.call('HDEL', batch, 'o:' .. ARGV[i])
    redis.call('UNLINK', ARGV[4] .. ARGV[i])
    redis.call('HDEL', ARGV[2] .. string.match(ARGV[i + 1], '^%d+'), 'r:' .. ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
    gone = gone + 1
  end
end
if gone > 0 then redis.call('HINCRBY', KEYS[1], 'operations', digits(-gone)) end
return {'ok', digits(gone)}
