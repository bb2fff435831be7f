-- records: reading records as they are now
-- Include: partition tails

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

-- rows -> flat list of row, body, attribute row, statistics, decay order, expiry ('' where absent);
-- a reader that holds the attribute rows takes them `bare`, without
local function read_records(Q, rows, bare)
  local out, n = {}, 0
  for first = 1, #rows, 500 do
    local last = math.min(#rows, first + 499)
    local bodies = redis.call('HMGET', Q.r, unpack(rows, first, last))
    local statistics = redis.call('HMGET', Q.c, unpack(rows, first, last))
    local orders = redis.call('ZMSCORE', Q.d, unpack(rows, first, last))
    local expiries = has_expiry(Q) and redis.call('ZMSCORE', Q.e, unpack(rows, first, last)) or {}
    for i = 1, last - first + 1 do
      local row = rows[first + i - 1]
      if bodies[i] then
        out[n + 1], out[n + 2], out[n + 3] = row, bodies[i], bare and '' or redis.call('GETRANGE', Q.a, row * 32, row * 32 + 31)
        out[n + 4], out[n + 5], out[n + 6] = statistics[i] or '', orders[i] or '', expiries[i] or ''
        n = n + 6
      end
    end
  end
  return out
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
        if x > 0 and (not set or set[row]) then found[row] = true end
      end
    end
    set = found
  end
  return set
end
