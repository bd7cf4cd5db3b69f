-- KEYS head · ARGV epoch, snapshot prefix, name of the new one, up to
local head = redis.call('HMGET', KEYS[1], 'epoch', 'last', 'upto', 'staging')
if head[1] ~= ARGV[1] then return {'fenced', head[1] or ''} end
if tonumber(ARGV[4]) > tonumber(head[2]) then return {'ahead', head[2]} end
if tonumber(ARGV[4]) < tonumber(head[3] or '0') then return {'older', head[3]} end
redis.call('HSET', KEYS[1], 'staging', ARGV[3])
if head[4] then redis.call('UNLINK', ARGV[2] .. head[4]) end
return {'ok'}
