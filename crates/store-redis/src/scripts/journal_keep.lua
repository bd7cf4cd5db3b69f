-- KEYS deployment, all ids, ids of its scope · ARGV id, fence, how many ended ones are kept when it
-- is new, prefixes of the names of deployments, of steps, of events and of scopes' ids, '1' when
-- there is a note, then fields and values. Returns 0 when a writer with a newer fence has written
-- it. The first write is one that a full server refuses.
local id, stay = ARGV[1], tonumber(ARGV[3])
local known = redis.call('HMGET', KEYS[1], 'fence', 'scope')
if known[1] and newer(known[1], ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 9))
if ARGV[8] ~= '1' then redis.call('HDEL', KEYS[1], 'note') end
if not known[1] then
  for _, other in ipairs(redis.call('ZREVRANGE', KEYS[3], 0, -1)) do
    if redis.call('HGET', ARGV[4] .. other, 'stage') ~= 'running' then
      stay = stay - 1
      if stay < 0 then
        redis.call('UNLINK', ARGV[4] .. other, ARGV[5] .. other, ARGV[6] .. other)
        redis.call('ZREM', KEYS[2], other)
        redis.call('ZREM', KEYS[3], other)
      end
    end
  end
elseif ARGV[7] .. known[2] ~= KEYS[3] then
  redis.call('ZREM', ARGV[7] .. known[2], id)
end
redis.call('ZADD', KEYS[2], 0, id)
redis.call('ZADD', KEYS[3], 0, id)
return 1
