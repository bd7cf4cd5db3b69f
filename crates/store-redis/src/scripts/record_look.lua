-- KEYS record · ARGV now. Answers the time and what is there, expired or not.
local kept = redis.call('HMGET', KEYS[1], 'print', 'token', 'created', 'expires', 'until', 'holds', 'answer')
table.insert(kept, 1, digits(clock(ARGV[1])))
return kept
