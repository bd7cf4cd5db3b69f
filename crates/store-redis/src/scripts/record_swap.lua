-- KEYS index, records · ARGV for each record its key, the head that was seen, the new value ('' to
-- remove it, the same head to keep it), and its score in the index ('' to keep it). Returns for
-- each whether it was still as it was seen.
local done = {}
for i = 2, #KEYS do
  local key, seen, follows, score = unpack(ARGV, i * 4 - 7, i * 4 - 4)
  done[i - 1] = 0
  if redis.call('GETRANGE', KEYS[i], 0, 74) == seen then
    done[i - 1] = 1
    if follows == '' then
      redis.call('UNLINK', KEYS[i])
      redis.call('ZREM', KEYS[1], key)
    else
      if follows ~= seen then redis.call('SET', KEYS[i], follows) end
      if score ~= '' then redis.call('ZADD', KEYS[1], score, key) end
    end
  end
end
return done
