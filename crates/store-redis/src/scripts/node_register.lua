-- KEYS nodes · ARGV now, name, record, ttl, '1' when it must exist already. A node is `until
-- record`; expired ones are removed.
local now = clock(ARGV[1])
local all, record = redis.call('HGETALL', KEYS[1]), ARGV[3]
local known, gone = false, {}
for i = 1, #all, 2 do
  local untl, where = string.match(all[i + 1], '^(%d+) (.*)$')
  if tonumber(untl) <= now then
    gone[#gone + 1] = all[i]
  elseif all[i] == ARGV[2] then
    known = where
  end
end
if ARGV[5] == '1' then
  if not known then return {} end
  record = known
end
local untl = digits(later(now, ARGV[4]))
redis.call('HSET', KEYS[1], ARGV[2], untl .. ' ' .. record)
for _, name in ipairs(gone) do
  if name ~= ARGV[2] then redis.call('HDEL', KEYS[1], name) end
end
return {untl, record}
