-- KEYS ids · ARGV prefix of the names of deployments, where to begin ('+', or '(' and an id), most.
-- Returns for each its id, then fields and values, the newest first.
local found = {}
for _, id in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[2], '-', 'LIMIT', 0, ARGV[3])) do
  found[#found + 1] = {id, redis.call('HGETALL', ARGV[1] .. id)}
end
return found
