-- KEYS bucket · ARGV now. Returns the time and the state.
return {digits(clock(ARGV[1])), redis.call('GET', KEYS[1])}
