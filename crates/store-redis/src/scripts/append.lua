-- KEYS head, staged batch, ops, res, and the archive queue where ends are noted · ARGV 1 epoch, 2
-- follows or '', 3 the append that must exist, 4 token, 5 fields staged, 6 first seq or '', 7 last
-- seq, 8 operations, 9 batch prefix, 10 where costs are noted or '', 11 what follows the append in
-- that note, 12 attempt prefix, 13 how many attempts, 14 how many reopened, those, then seq, field
-- and row of each attempt, then pairs of seq and the note of a result, and last, for the archive
-- queue, what follows the append in its note. The first write is one that a full server refuses.
local unpack = table.unpack or unpack
local head = redis.call('HMGET', KEYS[1], 'epoch', 'last', 'seq')
local function refuse(why, what)
  redis.call('UNLINK', KEYS[2])
  return {why, what or ''}
end
local last, follows = head[2], ARGV[2]
if head[1] ~= ARGV[1] then return refuse('fenced', head[1]) end
if tonumber(last) < tonumber(ARGV[3]) then return refuse('lost', last) end
if follows ~= last then
  local at = follows == '' and last or digits(tonumber(follows) + 1)
  if redis.call('HGET', ARGV[9] .. at, 't') == ARGV[4] then return refuse('ok', at) end
  if follows ~= '' then return refuse('follows', last) end
end
if ARGV[6] ~= '' and tonumber(ARGV[6]) <= tonumber(head[3] or '0') then return refuse('taken', head[3]) end
if redis.call('HLEN', KEYS[2]) ~= tonumber(ARGV[5]) then return refuse('unstaged', last) end
local lsn = digits(redis.call('HINCRBY', KEYS[1], 'last', 1))
redis.call('RENAME', KEYS[2], ARGV[9] .. lsn)
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'seq', ARGV[7])
  redis.call('HINCRBY', KEYS[1], 'operations', ARGV[8])
  redis.call('ZADD', KEYS[3], ARGV[6], lsn)
end
if ARGV[10] ~= '' then redis.call('RPUSH', ARGV[10], lsn .. ARGV[11]) end
local attempts = 15 + tonumber(ARGV[14])
for i = 15, attempts - 1 do
  local note = redis.call('HGET', KEYS[4], ARGV[i])
  if note then
    redis.call('HDEL', ARGV[9] .. string.match(note, '^%d+'), 'r:' .. ARGV[i])
    redis.call('HDEL', KEYS[4], ARGV[i])
  end
end
local results = attempts + 3 * tonumber(ARGV[13])
for i = attempts, results - 1, 3 do
  redis.call('HSET', ARGV[12] .. ARGV[i], ARGV[i + 1], ARGV[i + 2])
end
local stop = #ARGV
if KEYS[5] then
  redis.call('RPUSH', KEYS[5], lsn .. ARGV[stop])
  redis.call('HINCRBY', KEYS[1], 'trail', digits((stop - results) / 2))
  stop = stop - 1
end
for from = results, stop, 512 do
  local notes = {}
  for i = from, math.min(from + 511, stop), 2 do
    notes[#notes + 1] = ARGV[i]
    notes[#notes + 1] = lsn .. ARGV[i + 1]
  end
  redis.call('HSET', KEYS[4], unpack(notes))
end
return {'ok', lsn}
