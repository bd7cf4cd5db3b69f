-- KEYS bucket · ARGV now. Answers the time and what it is.
return {digits(clock(ARGV[1])), redis.call('GET', KEYS[1])}
