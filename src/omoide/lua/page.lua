-- page: the next live records in storage order
-- KEYS: head
-- ARGV: row to start after, size (at most 1,000)
-- Returns: gen, now, row to go on after (0 at the end), records | nothing for no partition
-- Cost: O(size), at most 32,768 rows looked at
-- Include: records
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local now, after, size = clock(), tonumber(ARGV[1]), tonumber(ARGV[2])
local last = math.min(H.next - 1, after + 32768)
local column = redis.call('GETRANGE', P.a, (after + 1) * 32, last * 32 + 31)
local rows, row = {}, after
while row < last and #rows < size do
  row = row + 1
  local flags = string.byte(column, (row - after - 1) * 32 + 1)
  if flags % 2 == 0 and not expired(P, row, now) then rows[#rows + 1] = row end
end
return { H.gen, now, row < H.next - 1 and row or 0, read_records(P, rows) }
