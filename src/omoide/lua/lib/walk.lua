-- walk: the live rows of a partition in storage order, so many at a time
-- Include: records

-- Rows after `after`, at most `size`, and the row to go on after (0 at the end). At most 32,768 rows are looked at,
-- 4,096 of them for their expiry, and the bodies are within 1 MiB (one at least).
local function next_rows(H, after, size, now)
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
  return rows, row < H.next - 1 and row or 0
end
