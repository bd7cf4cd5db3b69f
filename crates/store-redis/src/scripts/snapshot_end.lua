-- KEYS head, the new snapshot · ARGV epoch, snapshot prefix, its name, up to, parts
local head = redis.call('HMGET', KEYS[1], 'epoch', 'snapshot', 'staging')
if head[1] ~= ARGV[1] then return {'fenced', head[1] or ''} end
if head[2] == ARGV[3] then return {'ok'} end
if head[3] ~= ARGV[3] or redis.call('LLEN', KEYS[2]) ~= tonumber(ARGV[5]) then return {'unstaged', head[3] or ''} end
redis.call('HSET', KEYS[1], 'snapshot', ARGV[3], 'upto', ARGV[4], 'parts', ARGV[5])
redis.call('HDEL', KEYS[1], 'staging')
if head[2] then redis.call('UNLINK', ARGV[2] .. head[2]) end
return {'ok'}
