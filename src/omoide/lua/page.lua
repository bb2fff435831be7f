-- page: the next live records in storage order
-- KEYS: head
-- ARGV: row to start after, size (at most 500)
-- Returns: gen, now, row to go on after (0 at the end), records | nothing for no partition
-- Cost: O(size); at most 32,768 rows looked at, 4,096 of them for their expiry, and 1 MiB of bodies (one at least)
-- Include: records
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local now, after, size = clock(), tonumber(ARGV[1]), math.min(tonumber(ARGV[2]), 500)
local last = math.min(H.next - 1, after + 32768)
local column = redis.call('GETRANGE', P.a, (after + 1) * 32, last * 32 + 31)
local rows, row, looked, bytes, full = {}, after, 0, 0, false

-- The next 256 rows that are not dead, or what there is of them
local function undead()
  local batch = {}
  while row < last and #batch < 256 do
    row = row + 1
    if string.byte(column, (row - after - 1) * 32 + 1) % 2 == 0 then batch[#batch + 1] = row end
  end
  return batch
end

while row < last and not full do
  local batch = undead()
  looked = looked + #batch
  full = looked >= 4096
  for _, living in ipairs(unexpired(P, batch, now)) do
    bytes = bytes + redis.call('HSTRLEN', P.r, living)
    if #rows == size or (#rows > 0 and bytes > BODIES) then
      row, full = living - 1, true
      break
    end
    rows[#rows + 1] = living
  end
end
return { H.gen, now, row < H.next - 1 and row or 0, read_records(P, rows) }
