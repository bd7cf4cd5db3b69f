-- KEYS record · ARGV what it begins with in the hands of the holder, answer. Where that is not so, nothing is done.
-- Written whole, because room that is added to a string is given twice over.
local head = redis.call('GETRANGE', KEYS[1], 0, 74)
if string.sub(head, 1, 18) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], '\1\3' .. string.sub(head, 3) .. ARGV[2])
return 1
