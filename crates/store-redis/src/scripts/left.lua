-- When a record that nobody completed may be swept, as a score: a day after it expired, and when nobody works on it.
-- It has this score once a sweep has noted that it is `late`; before that, and completed, its score is when it expires.
local function left(expires, untl)
  return digits(math.max(later(tonumber(expires) + 0.0, 86400000000), tonumber(untl)))
end
