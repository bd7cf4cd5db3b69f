-- KEYS window · ARGV now
local kept = redis.call('HMGET', KEYS[1], 'level', 'until')
if kept[1] and tonumber(kept[2]) > clock(ARGV[1]) then return kept end
return {}
