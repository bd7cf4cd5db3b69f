-- KEYS deployment, events. Returns how many events it ever had, and those that are kept, the oldest
-- first.
return {redis.call('HGET', KEYS[1], 'events') or '0', redis.call('LRANGE', KEYS[2], 0, -1)}
