-- KEYS buckets · ARGV now, then cost, capacity and rate of each. Returns the time in seconds and
-- microseconds, whether it was granted, and after a semicolon each the states of the buckets
-- before.
local now = clock(ARGV[1])
local granted, buckets, kept = true, {}, ''
for i, key in ipairs(KEYS) do
  local cost, capacity, rate = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  local before = redis.call('GET', key)
  local b = before and bucket(before) or {tokens = capacity, carry = 0, at = now, capacity = capacity, rate = rate}
  refresh(b, now)
  if not less(b.tokens, capacity) then b.tokens, b.carry = capacity, 0 end
  b.capacity, b.rate = capacity, rate
  if less(b.tokens, cost) or b.at > now then granted = false end
  buckets[i], kept = b, kept .. ';' .. (before or '')
end
for i, key in ipairs(KEYS) do
  if granted then buckets[i].tokens = sum(buckets[i].tokens, ARGV[3 * i - 1], -1) end
  keep(key, buckets[i])
end
return '0 ' .. digits(now) .. (granted and ' 1' or ' 0') .. kept
