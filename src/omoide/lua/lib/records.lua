-- records: reading records as they are now
-- Include: partition tails remains

-- Whether the partition had any expiry when the script looked first
local expiring
local function has_expiry(Q)
  if expiring == nil then expiring = redis.call('EXISTS', Q.e) == 1 end
  return expiring
end

local function expired(Q, row, now)
  local at = has_expiry(Q) and redis.call('ZSCORE', Q.e, row)
  return at and tonumber(at) <= now
end

-- The instant whose validity counts, set by a verb; nil: whatever the validity
local valid_at

local function invalid(Q, row)
  if not valid_at then return false end
  local from, till = struct.unpack('<i8i8', redis.call('GETRANGE', Q.w, row * 24 + 8, row * 24 + 23))
  return valid_at < from or valid_at >= till
end

-- `asked`: an instant (ms), or `now`; nothing where validity does not count
local function mask(asked, now) valid_at = asked == 'now' and now or tonumber(asked or '') end

local function zmscore(key, rows)
  if #rows <= 1000 then return redis.call('ZMSCORE', key, unpack(rows)) end
  local all = {}
  for first = 1, #rows, 1000 do
    local part = redis.call('ZMSCORE', key, unpack(rows, first, math.min(#rows, first + 999)))
    for i = 1, #part do all[first + i - 1] = part[i] end
  end
  return all
end

-- Those of the rows whose time is not over, in their order
local function unexpired(Q, rows, now)
  if #rows == 0 or not has_expiry(Q) then return rows end
  local expiries, found = zmscore(Q.e, rows), {}
  for i = 1, #rows do
    if not expiries[i] or tonumber(expiries[i]) > now then found[#found + 1] = rows[i] end
  end
  return found
end

local BODIES = 1048576 -- bytes of bodies in one answer; a single record may have more

-- How many of the first of these rows have bodies within so many bytes; one at least, where there is one
local function fitting(Q, rows, bytes)
  local sum = 0
  for i = 1, #rows do
    sum = sum + redis.call('HSTRLEN', Q.r, rows[i])
    if sum > bytes and i > 1 then return i - 1 end
  end
  return #rows
end

-- At most 1,000 of them
local function first_of(rows, count)
  if count >= #rows then return rows end
  return { unpack(rows, 1, count) }
end

-- Seven lists: rows, bodies (none where there is no record), attribute rows, statistics, decay order, expiry, intervals.
-- A reader that holds attributes and intervals takes the records `bare`, without them.
local function read_records(Q, rows, bare)
  if #rows == 0 then return {} end
  local attributes, intervals = {}, {}
  for i = 1, bare and 0 or #rows do
    attributes[i] = redis.call('GETRANGE', Q.a, rows[i] * 32, rows[i] * 32 + 31)
  end
  for i = 1, not bare and redis.call('EXISTS', Q.w) == 1 and #rows or 0 do
    intervals[i] = redis.call('GETRANGE', Q.w, rows[i] * 24, rows[i] * 24 + 23)
  end
  return { rows, hmget(Q.r, rows), attributes, hmget(Q.c, rows), zmscore(Q.d, rows),
    has_expiry(Q) and zmscore(Q.e, rows) or {}, intervals }
end

-- The set of rows that hold every one of these terms, as a table, or nil when there is no such filter
local function rows_with(Q, terms)
  if #terms == 0 then return nil end
  local tails, set = hmget(Q.t, terms), nil
  for i = 1, #terms do
    local found = {}
    if tails[i] then
      local data = postings_since(Q, terms[i], tails[i], 0)
      for at = 1, #data, 4 do
        local x = struct.unpack('>I4', data, at)
        local row = (x - x % 1024) / 1024
        if x > 0 and not gone[row] and (not set or set[row]) then found[row] = true end
      end
    end
    set = found
  end
  return set
end
