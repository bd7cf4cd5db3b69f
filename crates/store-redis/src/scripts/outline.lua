-- KEYS batch, res · ARGV batch prefix, what must be in the header ('' or text) twice, then seqs
-- Returns seq, header and envelope, and header of the result or '', without payloads and bodies.
local found = {}
for i = 4, #ARGV do
  local kept = redis.call('HGET', KEYS[1], 'o:' .. ARGV[i])
  local stop = kept and string.find(kept, '\n', 1, true)
  local head = stop and string.sub(kept, 1, stop)
  if head and string.find(head, ARGV[2], 1, true) and string.find(head, ARGV[3], 1, true) then
    local note = redis.call('HGET', KEYS[2], ARGV[i])
    local ended = note and redis.call('HGET', ARGV[1] .. string.match(note, '^%d+'), 'r:' .. ARGV[i])
    found[#found + 1] = ARGV[i]
    found[#found + 1] = string.sub(kept, 1, stop + tonumber(string.match(head, '^{"envelope":(%d+)')))
    found[#found + 1] = ended and string.sub(ended, 1, string.find(ended, '\n', 1, true)) or ''
  end
end
return found
