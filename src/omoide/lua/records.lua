-- records: records by row, as they are now
-- KEYS: head
-- ARGV: gen, then at most 1,000 rows
-- Returns: now, records | nothing when the rows were renumbered
-- Cost: O(rows)
-- Include: records
local H = glance(P)
if not H or H.gen ~= ARGV[1] then return {} end
local now, rows = clock(), {}
for i = 2, #ARGV do
  if not expired(P, ARGV[i], now) then rows[#rows + 1] = tonumber(ARGV[i]) end
end
return { now, read_records(P, rows) }
