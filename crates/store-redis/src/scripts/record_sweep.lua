-- KEYS index · ARGV now, most, record prefix, how long what is left behind is kept. Answers how many it looked at and
-- how many went. What expired unfinished is noted as late and comes up again when it may go.
local now, gone = clock(ARGV[1]), 0
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now), 'LIMIT', 0, ARGV[2])
for _, key in ipairs(old) do
  local record = ARGV[3] .. key
  local kept = redis.call('HMGET', record, 'expires', 'until')
  local due = kept[1] and kept[2] ~= '' and left(kept[1], kept[2], ARGV[4])
  if due and tonumber(due) > now then
    redis.call('HSET', record, 'late', '1')
    redis.call('ZADD', KEYS[1], due, key)
  else
    gone = gone + redis.call('UNLINK', record)
    redis.call('ZREM', KEYS[1], key)
  end
end
return {#old, gone}
