-- KEYS audit log · ARGV entry, how many are kept, where those begin that are kept. An entry that is
-- sent twice is there once. The first write is one that a full server refuses.
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZREMRANGEBYLEX', KEYS[1], '-', '(' .. ARGV[3])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[2]))
