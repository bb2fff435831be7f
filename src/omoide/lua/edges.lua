-- edges: what rows, and the newest ones, were put to use together with
-- KEYS: head
-- ARGV: gen, then at most 16 rows
-- Returns: v, then row and edges in turn: those of a weight above 0.5, strongest first, at most 16, 8 bytes each (u32 row,
--   f32 weight, little endian) | nothing when the rows were renumbered
-- Cost: O(rows)
-- Include: tails partition
local NEWEST = 64 -- they may well be among the best once their words are known
local head = redis.call('HMGET', P.h, 'gen', 'v', 'next')
if head[1] ~= ARGV[1] then return {} end
local rows, out = {}, { tonumber(head[2]) }
for i = 2, #ARGV do rows[i - 1] = tonumber(ARGV[i]) end
for row = math.max(1, head[3] - NEWEST), head[3] - 1 do rows[#rows + 1] = row end
local lists = hmget(P.g, rows)
for i = 1, #rows do
  local data, stop = lists[i] or '', 0
  while stop < 16 and #data >= 8 * (stop + 1) and struct.unpack('<f', data, 8 * stop + 5) > 0.5 do stop = stop + 1 end
  out[2 * i], out[2 * i + 1] = rows[i], string.sub(data, 1, 8 * stop)
end
return out
