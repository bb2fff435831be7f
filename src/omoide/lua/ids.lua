-- ids: the ids of rows
-- KEYS: head
-- ARGV: gen, then at most 4,096 rows
-- Returns: an id per row, empty for a row that is gone | nothing when the rows were renumbered
-- Cost: O(rows)
-- Include: tails partition footprint
if redis.call('HGET', P.h, 'gen') ~= ARGV[1] then return {} end
local rows, out = {}, {}
for i = 2, #ARGV do rows[i - 1] = ARGV[i] end
local footprints = hmget(P.f, rows)
for i = 1, #rows do
  out[i] = footprints[i] and id_of(footprints[i]) or ''
end
return out
