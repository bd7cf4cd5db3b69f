-- When a record that nobody completed may be swept, as a score. It has this score once a sweep has noted that it is
-- `late`; until then, and when it is completed, its score is when it expires.
local function left(expires, untl, kept_for)
  return digits(math.max(later(tonumber(expires) + 0.0, kept_for), tonumber(untl)))
end
