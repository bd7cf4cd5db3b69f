-- KEYS head, ops, batch · ARGV epoch, append: a batch without operations is removed from the index.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return {'fenced', ''} end
for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
  if string.sub(field, 1, 2) == 'o:' then return {'ok'} end
end
redis.call('ZREM', KEYS[2], ARGV[2])
return {'ok'}
