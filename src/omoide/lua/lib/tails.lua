-- tails: reading the posting lists (the format is drawn in core/postings.py)
local MARK, SEALED_BYTES = 4278190080, 256

-- HMGET of any number of fields
local function hmget(key, names)
  local n = #names
  if n == 0 then return {} end
  if n <= 1000 then return redis.call('HMGET', key, unpack(names)) end
  local all, count = {}, 0
  for first = 1, n, 1000 do
    local part = redis.call('HMGET', key, unpack(names, first, math.min(n, first + 999)))
    for i = 1, #part do all[count + i] = part[i] end
    count = count + #part
  end
  return all
end

-- How many of the postings in `data` from byte `start` on are nulls.
local function nulls_in(data, start)
  if not string.find(data, '\0\0\0\0', start, true) then return 0 end
  local count = 0
  for at = start, #data, 4 do
    if struct.unpack('>I4', data, at) == 0 then count = count + 1 end
  end
  return count
end

-- tail -> sealed 64-blocks, nulls, last sealed row, where its postings start, live postings
local function parse_tail(tail)
  local first = struct.unpack('>I4', tail)
  if first < MARK then
    local nulls = nulls_in(tail, 1)
    return 0, nulls, 0, 1, #tail / 4 - nulls
  end
  local sealed, nulls, last = first - MARK, struct.unpack('>I4I4', tail, 5)
  return sealed, nulls, last, 13, sealed * 64 + (#tail - 12) / 4 - nulls
end

local function segment_name(term, number) return term .. ':' .. number end

-- The sealed segments `from`..`to` of a term, in order
local function segments(Q, term, from, to)
  local names = {}
  for number = from, to do names[#names + 1] = segment_name(term, number) end
  return hmget(Q.s, names)
end

-- First row of a list of postings that is no null, from its start; nil when all are nulls
local function first_row(data)
  for at = 1, #data, 4 do
    local x = struct.unpack('>I4', data, at)
    if x > 0 then return (x - x % 1024) / 1024 end
  end
end

local function last_row(data, start)
  for at = #data - 3, start, -4 do
    local x = struct.unpack('>I4', data, at)
    if x > 0 then return (x - x % 1024) / 1024 end
  end
end

-- All postings whose row may be above `since` (whole segments; the reader drops what it holds)
local function postings_since(Q, term, tail, since)
  local sealed, _, last_sealed, start = parse_tail(tail)
  if since >= last_sealed then
    if since == 0 then return string.sub(tail, start) end
    local at = #tail - 3
    while at >= start do
      local x = struct.unpack('>I4', tail, at)
      if x > 0 and x < (since + 1) * 1024 then break end
      at = at - 4
    end
    return string.sub(tail, at + 4)
  end
  local final = math.floor((sealed - 1) / 16)
  local parts
  if since == 0 then
    parts = segments(Q, term, 0, final)
  else
    parts = {}
    local number = final
    repeat
      local data = redis.call('HGET', Q.s, segment_name(term, number))
      if not data then error('CORRUPT a sealed segment is missing', 0) end
      table.insert(parts, 1, data)
      local first = first_row(data)
      number = number - 1
    until number < 0 or (first and first <= since)
  end
  for i = 1, #parts do
    if not parts[i] then error('CORRUPT a sealed segment is missing', 0) end
  end
  parts[#parts + 1] = string.sub(tail, start)
  return table.concat(parts)
end
