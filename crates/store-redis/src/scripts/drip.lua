-- Figures of a bucket are decimal text of up to 64 bits. Up to 15 digits plain numbers are exact;
-- longer ones are added, subtracted and multiplied in limbs of a million, lowest first, so that the
-- parts of a refill are the lowest limb.
local MILLION = 1000000
local function num(s) return tonumber(s) + 0.0 end
local function short(s) return #s < 16 end
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local function limbs(s)
  local out = {}
  for stop = #s, 1, -6 do out[#out + 1] = num(string.sub(s, math.max(1, stop - 5), stop)) end
  return out
end
local function carried(n)
  local i = 1
  while i <= #n do
    local over = math.floor(n[i] / MILLION)
    if over ~= 0 then n[i], n[i + 1] = n[i] - over * MILLION, (n[i + 1] or 0) + over end
    i = i + 1
  end
  return n
end
local function text(n)
  local top = #n
  while top > 1 and n[top] == 0 do top = top - 1 end
  local out = {digits(n[top] or 0)}
  for i = top - 1, 1, -1 do out[#out + 1] = string.format('%06.0f', n[i]) end
  return table.concat(out)
end
-- a + sign * b; the result is never below zero.
local function sum(a, b, sign)
  if short(a) and short(b) then return digits(num(a) + sign * num(b)) end
  local n = limbs(a)
  for i, limb in ipairs(limbs(b)) do n[i] = (n[i] or 0) + sign * limb end
  return text(carried(n))
end
local function product(a, b)
  local n, other = {}, limbs(b)
  for i, x in ipairs(limbs(a)) do
    for j, y in ipairs(other) do n[i + j - 1] = (n[i + j - 1] or 0) + x * y end
  end
  return carried(n)
end
local function bucket(kept)
  local tokens, carry, at, capacity, rate = string.match(kept, '(%d+) (%d+) (%d+) (%d+) (%d+)')
  return {tokens = tokens, carry = num(carry), at = num(at), capacity = capacity, rate = rate}
end
local function refresh(b, now)
  if now <= b.at then return end
  local elapsed = now - b.at
  local whole
  b.at = now
  if elapsed * num(b.rate) < 4503599627370496 then
    local parts = elapsed * num(b.rate) + b.carry
    b.carry = math.fmod(parts, MILLION)
    whole = digits((parts - b.carry) / MILLION)
  else
    local parts = product(digits(elapsed), b.rate)
    parts[1] = parts[1] + b.carry
    b.carry = table.remove(carried(parts), 1)
    whole = text(parts)
  end
  b.tokens = sum(b.tokens, whole, 1)
  if not less(b.tokens, b.capacity) then b.tokens, b.carry = b.capacity, 0 end
end
local function keep(key, b)
  redis.call('SET', key, table.concat({b.tokens, digits(b.carry), digits(b.at), b.capacity, b.rate}, ' '))
end
