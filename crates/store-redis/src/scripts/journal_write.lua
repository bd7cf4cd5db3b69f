-- KEYS deployment, steps · ARGV fence, prefix of the names of scopes' objects, how many of the
-- following are of steps; those, a field and a value each; then the same of objects, '' for one
-- that is removed. Returns 0 when there is no such deployment or a writer with a newer fence has
-- written it. No field comes twice.
local known = redis.call('HMGET', KEYS[1], 'fence', 'scope')
if not known[1] or newer(known[1], ARGV[1]) then return 0 end
local last = 3 + tonumber(ARGV[3])
for from = 4, last, 512 do
  redis.call('HSET', KEYS[2], unpack(ARGV, from, math.min(from + 511, last)))
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
