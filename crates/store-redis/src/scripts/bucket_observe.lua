-- KEYS bucket · ARGV now. Answers the time and what it is.
return {digits(clock(ARGV[1])), redis.call('HMGET', KEYS[1], 'tokens', 'carry', 'at', 'capacity', 'rate')}
