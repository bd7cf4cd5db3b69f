-- KEYS record · ARGV its prefix while the holder has it, response. With another prefix, nothing is
-- done. Written whole, because Redis doubles the memory of a string that is appended to.
local head = redis.call('GETRANGE', KEYS[1], 0, 74)
if string.sub(head, 1, 18) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], '\1\3' .. string.sub(head, 3) .. ARGV[2])
return 1
