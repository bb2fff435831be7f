-- walk: the live rows of a partition in storage order, so many at a time
-- Include: records

-- Rows after `after`, at most `size`, and the row to go on after (0 at the end). At most 32,768 rows are looked at,
-- 4,096 of them for their expiry, and the bodies are within 1 MiB (one at least).
local function next_rows(H, after, size, now)
  local last = math.min(H.next - 1, after + 32768)
  local rows, row, looked, bytes, full = {}, after, 0, 0, false
  local column, held = '', after -- attribute rows up to `held`, 1,024 at a time

  -- The next 256 rows that are not dead, or what there is of them
  local function undead()
    local batch = {}
    while row < last and #batch < 256 do
      if row == held then
        held = math.min(last, held + 1024)
        column = redis.call('GETRANGE', P.a, (row + 1) * 32, held * 32 + 31)
      end
      row = row + 1
      if string.byte(column, #column - (held - row + 1) * 32 + 1) % 2 == 0 then batch[#batch + 1] = row end
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
