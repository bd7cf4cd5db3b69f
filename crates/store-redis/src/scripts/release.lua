-- KEYS head · ARGV epoch
if redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] then redis.call('HDEL', KEYS[1], 'node', 'until') end
return {'ok'}
