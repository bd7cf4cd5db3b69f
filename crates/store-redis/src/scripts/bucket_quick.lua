-- The common case of a reservation, before anything else is even defined: all figures are short
-- enough for plain numbers. Takes and replies like the general code below, which handles everything
-- else. The reply is one text, because a list costs the server a third more.
local function quick()
  local call, match, answer, now = redis.call, string.match, '', ARGV[1]
  if now == '' then
    local t = call('TIME')
    answer, now = t[1] .. ' ' .. t[2], t[1] * 1000000 + t[2]
  else
    answer, now = '0 ' .. now, now + 0
  end
  -- A preallocated table: one that grows costs more than its contents.
  local granted, before, after = true, '', {0, 0, 0, 0, 0, 0}
  for i = 1, #KEYS do
    local cost, capacity, rate = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
    if #cost > 15 or #capacity > 15 or #rate > 15 then return end
    local raw, most = call('GET', KEYS[i]), capacity + 0
    local tokens, carry, at = most, 0, now
    if raw then
      local left, rest, since, full, speed = match(raw, '(%d+) (%d+) (%d+) (%d+) (%d+)')
      if #left > 15 or #full > 15 then return end
      tokens, carry, at = left + 0, rest + 0, since + 0
      if now > at then
        local parts = (now - at) * speed + carry
        if parts >= 4503599627370496 then return end
        carry, at = parts % 1000000, now
        tokens, full = tokens + (parts - carry) / 1000000, full + 0
        if tokens >= full then tokens, carry = full, 0 end
      end
      if tokens >= most then tokens, carry = most, 0 end
      before = before .. ';' .. raw
    else
      before = before .. ';'
    end
    if tokens < cost + 0 or at > now then granted = false end
    after[3 * i - 2], after[3 * i - 1], after[3 * i] = tokens, carry, at
  end
  for i = 1, #KEYS do
    local tokens = after[3 * i - 2]
    if granted then tokens = tokens - ARGV[3 * i - 1] end
    call('SET', KEYS[i], string.format('%d %d %d %s %s', tokens, after[3 * i - 1], after[3 * i], ARGV[3 * i],
      ARGV[3 * i + 1]))
  end
  return answer .. (granted and ' 1' or ' 0') .. before
end
local quickly = quick()
if quickly then return quickly end
