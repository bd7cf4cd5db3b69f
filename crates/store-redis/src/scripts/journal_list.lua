-- KEYS ids · ARGV what names of deployments begin with, where to begin ('+', or '(' and an id), most. Answers of each its
-- id, then fields and values, the newest first.
local found = {}
for _, id in ipairs(redis.call('ZREVRANGEBYLEX', KEYS[1], ARGV[2], '-', 'LIMIT', 0, ARGV[3])) do
  found[#found + 1] = {id, redis.call('HGETALL', ARGV[1] .. id)}
end
return found
