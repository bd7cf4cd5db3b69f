-- The time in microseconds: the given one, or else the server's own. Times and fences stay below
-- 2^53, where numbers are exact; text is made with '%.0f', because plain tostring rounds above
-- 1e14.
local function digits(n) return string.format('%.0f', n) end
local function clock(given)
  if given ~= '' then return tonumber(given) + 0.0 end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000.0 + tonumber(t[2])
end
local function later(now, by) return math.min(now + tonumber(by), 9007199254740991) end
