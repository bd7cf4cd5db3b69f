-- KEYS nodes · ARGV now. Answers the time, then names and nodes, gone or not.
local all = redis.call('HGETALL', KEYS[1])
table.insert(all, 1, digits(clock(ARGV[1])))
return all
