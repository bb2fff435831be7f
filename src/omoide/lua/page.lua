-- page: the next live records in storage order
-- KEYS: head
-- ARGV: row to start after, size (at most 500)
-- Returns: gen, now, row to go on after (0 at the end), records | nothing for no partition
-- Cost: O(size); at most 32,768 rows looked at, 4,096 of them for their expiry, and 1 MiB of bodies (one at least)
-- Include: walk
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local now = clock()
local rows, after = next_rows(H, tonumber(ARGV[1]), math.min(tonumber(ARGV[2]), 500), now)
return { H.gen, now, after, read_records(P, rows) }
