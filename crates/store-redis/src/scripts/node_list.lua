-- KEYS nodes · ARGV now. Returns the time, then names and nodes, alive or not.
local all = redis.call('HGETALL', KEYS[1])
table.insert(all, 1, digits(clock(ARGV[1])))
return all
