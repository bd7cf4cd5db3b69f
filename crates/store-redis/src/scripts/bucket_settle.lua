-- KEYS bucket · ARGV now, amount, '1' to return it or '-1' to take it. Returns the time and the
-- state before.
local now, before = clock(ARGV[1]), redis.call('GET', KEYS[1])
if not before then return {digits(now), before} end
local b = bucket(before)
refresh(b, now)
if ARGV[3] == '-1' then
  b.tokens = less(b.tokens, ARGV[2]) and '0' or sum(b.tokens, ARGV[2], -1)
else
  b.tokens = sum(b.tokens, ARGV[2], 1)
  if not less(b.tokens, b.capacity) then b.tokens, b.carry = b.capacity, 0 end
end
keep(KEYS[1], b)
return {digits(now), before}
