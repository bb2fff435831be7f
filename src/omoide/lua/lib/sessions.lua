-- sessions: what the neighbours of a memory in its session lend it
-- Include: records footprint remains
--
-- The order of a session is time, then id, over visible records. Rows of a session are those of its
-- equality term (core/postings.py), whose name the footprint of any of them gives.

-- Names in byte order, whatever the collation of the server
local function bytes_less(a, b)
  for at = 1, math.min(#a, #b) do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- row -> id, from its footprint
local ids = setmetatable({}, {
  __index = function(self, row)
    local data = redis.call('HGET', P.f, row)
    if not data then error('CORRUPT a footprint is missing', 0) end
    local id = id_of(data)
    self[row] = id
    return id
  end,
})

-- row -> flags, confidence, length, importance, session, author, version, time, as a list
local attributes = setmetatable({}, {
  __index = function(self, row)
    local held = { struct.unpack('<I2I2I4fI4I4I4i8', redis.call('GETRANGE', P.a, row * 32, row * 32 + 31)) }
    self[row] = held
    return held
  end,
})

-- Attribute rows of `rows` (ascending), read at once where they lie together: bytes and the first row
local function stretch_of(rows)
  local first, last = rows[1], rows[#rows]
  if last - first > 4 * #rows + 64 then return nil end
  return redis.call('GETRANGE', P.a, first * 32, last * 32 + 31), first
end

-- Length, time and author of a row
local function length_in(block, first, row)
  if not block then return attributes[row][3] end
  return (struct.unpack('<I4', block, (row - first) * 32 + 5))
end
local function time_in(block, first, row)
  if not block then return attributes[row][8] end
  return (struct.unpack('<i8', block, (row - first) * 32 + 25))
end

local function author_in(block, first, row)
  if not block then return attributes[row][6] end
  return (struct.unpack('<I4', block, (row - first) * 32 + 17))
end

-- The visible rows of the session of `row`, in order, and their stretch; nil when they are more than `most`
local function session_rows(row, field, now, most)
  local name = parse_footprint(redis.call('HGET', P.f, row)).session
  local term = '\1' .. field .. '\2' .. name
  local tail = redis.call('HGET', P.t, term)
  local rows, n = {}, 0
  if not tail then return rows end
  if live_in(term, tail) > most then return nil end
  local data = postings_since(P, term, tail, 0)
  for at = 1, #data, 4 do
    local x = struct.unpack('>I4', data, at)
    local other = (x - x % 1024) / 1024
    if x > 0 and not gone[other] and not expired(P, other, now) and not invalid(P, other) then
      n = n + 1
      rows[n] = other
    end
  end
  if n == 0 then return rows end
  local block, first = stretch_of(rows)
  local times, ordered = {}, true
  for at = 1, n do
    times[rows[at]] = time_in(block, first, rows[at])
    if at > 1 and times[rows[at - 1]] >= times[rows[at]] then ordered = false end
  end
  if not ordered then
    table.sort(rows, function(a, b)
      local x, y = times[a], times[b]
      if x ~= y then return x < y end
      return a ~= b and bytes_less(ids[a], ids[b])
    end)
  end
  return rows, block, first
end

-- row of `matched` -> { one before, one after, two before, two after (nil at the ends), their stretch };
-- nil when the records of their sessions are more than `most`
local function links_of(matched, field, now, most)
  local links, left, seen = {}, most, {}
  for row in pairs(matched) do
    local session = attributes[row][5]
    if session > 0 and not seen[session] then
      seen[session] = true
      local rows, block, first = session_rows(row, field, now, left)
      if not rows then return nil end
      left = left - #rows
      for at = 1, #rows do
        local one = rows[at]
        if matched[one] then links[one] = { rows[at - 1], rows[at + 1], rows[at - 2], rows[at + 2], block, first } end
      end
    end
  end
  return links
end
