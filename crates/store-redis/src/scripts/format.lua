-- KEYS format · ARGV the format that is written. A later one that another process has written
-- meanwhile stays.
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
