-- KEYS head, archive queue · ARGV epoch, the last append whose ends are archived. Idempotent: each
-- note begins with its append.
local head = redis.call('HMGET', KEYS[1], 'epoch', 'trail')
if head[1] ~= ARGV[1] then return {'fenced', head[1] or ''} end
local gone, note = 0
while true do
  note = redis.call('LINDEX', KEYS[2], 0)
  if not note or tonumber(string.match(note, '^%d+')) > tonumber(ARGV[2]) then break end
  local _, words = string.gsub(note, ' ', '')
  gone = gone + words - 1
  redis.call('LPOP', KEYS[2])
end
if not note then
  redis.call('HDEL', KEYS[1], 'trail')
elseif gone > 0 then
  redis.call('HSET', KEYS[1], 'trail', digits(math.max(tonumber(head[2] or '0') - gone, 0)))
end
return {'ok', digits(gone)}
