-- KEYS head, cost queue · ARGV epoch, the last append whose costs are archived. Idempotent: each
-- note begins with its append.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then return {'fenced', epoch or ''} end
while true do
  local note = redis.call('LINDEX', KEYS[2], 0)
  if not note or tonumber(string.match(note, '^%d+')) > tonumber(ARGV[2]) then break end
  redis.call('LPOP', KEYS[2])
end
return {'ok', ''}
