-- KEYS deployment, steps, events · ARGV fence, prefix of the names of scopes' objects, token of
-- this write, how many events are kept, how many steps; those, a field and a value each, which are
-- events too; then the same of objects, '' for one that is removed, and none of them twice. Returns
-- 0 when there is no such deployment or a writer with a newer fence has written it. What is sent
-- twice is written once. The first write is one that a full server refuses.
local known = redis.call('HMGET', KEYS[1], 'fence', 'scope', 'write')
if not known[1] or newer(known[1], ARGV[1]) then return 0 end
if known[3] == ARGV[3] then return 1 end
redis.call('HSET', KEYS[1], 'write', ARGV[3])
local last = 5 + 2 * tonumber(ARGV[5])
for from = 6, last, 512 do
  local to, events = math.min(from + 511, last), {}
  redis.call('HSET', KEYS[2], unpack(ARGV, from, to))
  for i = from + 1, to, 2 do events[#events + 1] = ARGV[i] end
  redis.call('RPUSH', KEYS[3], unpack(events))
end
if last > 5 then
  redis.call('HINCRBY', KEYS[1], 'events', ARGV[5])
  redis.call('LTRIM', KEYS[3], '-' .. ARGV[4], -1)
end
local objects, kept, gone = ARGV[2] .. known[2], {}, {}
for i = last + 1, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then
    kept[#kept + 1] = ARGV[i]
    kept[#kept + 1] = ARGV[i + 1]
  else
    gone[#gone + 1] = ARGV[i]
  end
  local is_last = i + 1 >= #ARGV
  if #kept > 0 and (#kept >= 512 or is_last) then
    redis.call('HSET', objects, unpack(kept))
    kept = {}
  end
  if #gone > 0 and (#gone >= 512 or is_last) then
    redis.call('HDEL', objects, unpack(gone))
    gone = {}
  end
end
return 1
