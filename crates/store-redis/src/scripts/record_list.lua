-- KEYS index · ARGV most, record prefix, score and key of the last one that was scanned ('' at the
-- beginning). Returns score, key, head and length of those behind it. When the last one no longer
-- exists, starts from the first of its score.
local from = 0
if ARGV[3] ~= '' then
  local score = redis.call('ZSCORE', KEYS[1], ARGV[4])
  if score and tonumber(score) == tonumber(ARGV[3]) then
    from = redis.call('ZRANK', KEYS[1], ARGV[4]) + 1
  else
    from = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[3])
  end
end
local found = {}
local some = redis.call('ZRANGE', KEYS[1], digits(from), digits(from + tonumber(ARGV[1]) - 1), 'WITHSCORES')
for i = 1, #some, 2 do
  local record = ARGV[2] .. some[i]
  local head = redis.call('GETRANGE', record, 0, 74)
  found[#found + 1] = {digits(tonumber(some[i + 1])), some[i], head, redis.call('STRLEN', record)}
end
return found
