-- KEYS index · ARGV now, most, record prefix, score and key of the last one that was looked at ('' at the beginning).
-- Answers the time, then score, key and record of those behind it, with the length of an answer in its place. When the
-- last one is not there any more, from the first of its score on.
local from = 0
if ARGV[4] ~= '' then
  local score = redis.call('ZSCORE', KEYS[1], ARGV[5])
  if score and tonumber(score) == tonumber(ARGV[4]) then
    from = redis.call('ZRANK', KEYS[1], ARGV[5]) + 1
  else
    from = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[4])
  end
end
local found = {digits(clock(ARGV[1]))}
local some = redis.call('ZRANGE', KEYS[1], digits(from), digits(from + tonumber(ARGV[2]) - 1), 'WITHSCORES')
for i = 1, #some, 2 do
  local record = ARGV[3] .. some[i]
  local kept = redis.call('HMGET', record, 'print', 'token', 'created', 'expires', 'until', 'holds')
  kept[7] = digits(redis.call('HSTRLEN', record, 'answer'))
  found[#found + 1] = {digits(tonumber(some[i + 1])), some[i], kept}
end
return found
