-- records: records by row, as they are now
-- KEYS: head
-- ARGV: gen, then at most 1,000 rows; a first one below 0 is the most bytes that their bodies may have
-- Returns: now, records, how many of the rows were looked at (one at least) | nothing when the rows were renumbered
-- Cost: O(rows)
-- Include: records
local H = glance(P)
if not H or H.gen ~= ARGV[1] then return {} end
local now, rows, bytes = clock(), {}, nil
for i = 2, #ARGV do
  local row = tonumber(ARGV[i])
  if row < 0 then bytes = -row else rows[#rows + 1] = row end
end
local looked = #rows
if bytes then looked = fitting(P, rows, bytes) end
return { now, read_records(P, unexpired(P, first_of(rows, looked), now)), looked }
