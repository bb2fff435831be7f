-- records: records by row, as they are now
-- KEYS: head
-- ARGV: gen, the most bytes that the bodies may have, then at most 1,000 rows
-- Returns: now, records, how many of the rows were looked at (one at least) | nothing when the rows were renumbered
-- Cost: O(rows)
-- Include: records
local H = glance(P)
if not H or H.gen ~= ARGV[1] then return {} end
local now, rows = clock(), {}
for i = 3, #ARGV do rows[i - 2] = tonumber(ARGV[i]) end
local looked = fitting(P, rows, tonumber(ARGV[2]))
return { now, read_records(P, unexpired(P, first_of(rows, looked), now)), looked }
