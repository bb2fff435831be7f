-- head: open a partition for writing, and close it again
-- Include: journal partition

-- A name for the row numbers that follow
local function new_gen()
  local t = call('TIME')
  return string.format('%d.%06d', t[1], t[2])
end

-- `shape` carries format, fingerprint and decay rate. A partition that is not there gets a head in memory; nothing
-- is written before `close`.
local function open(Q, shape)
  local H = read_head(Q)
  if H then
    check_companions(Q, H)
    return H
  end
  if call('EXISTS', Q.a, Q.m, Q.r) > 0 then error('CORRUPT the head of the partition is missing', 0) end
  H = {
    format = shape.format, fingerprint = shape.fingerprint, next = 1, n = 0, sdl = 0, dead = 0,
    gen = new_gen(), v = 0, x0 = 0, ordinals = 0, shadow = '', lease = 0, ['until'] = 0,
    rate = shape.rate or 0, peak = 0, seq = 0, vectors = '', stride = 0, timed = 0, remains = '',
  }
  return H
end

local function require_shape(H, shape)
  if H.format ~= shape.format or H.fingerprint ~= shape.fingerprint then
    error('FINGERPRINT the stored index has another shape', 0)
  end
end

-- The keys of records and indexes; turns (i) have an expiry of their own, counters (n) stand alone.
local RECORD_LETTERS = { 'h', 't', 's', 'a', 'w', 'x', 'r', 'm', 'f', 'd', 'e', 'q', 'c', 'g', 'k', 'v', 'o', 'z' }
local LETTERS = { 'i', 'n', unpack(RECORD_LETTERS) }

local function close(Q, H)
  local log = call('STRLEN', Q.x)
  if log > 4096 * 4 then
    H.x0 = H.x0 + log / 4
    del(Q.x)
  end
  H.v = H.v + 1
  local names, values = {}, {}
  for i = 1, #HEAD do
    local value = H[HEAD[i]]
    names[i], values[i] = HEAD[i], type(value) == 'number' and string.format('%.17g', value) or value
  end
  hset_many(Q.h, names, values, H.stored)
  H.stored = values
end

-- Where every record expires, the keys do too, at the latest expiry; one record without expiry keeps them all.
local function settle_expiry(Q, H)
  local latest = 0
  if H.n > 0 and call('ZCARD', Q.e) == H.n then
    latest = tonumber(call('ZREVRANGE', Q.e, 0, 0, 'WITHSCORES')[2])
    local now = clock()
    if latest <= now then latest = now + 1000 end -- an expiry in the past would take the keys at once, for good
  end
  if latest == 0 and H['until'] == 0 then return end
  H['until'] = latest
  hset(Q.h, 'until', string.format('%d', latest))
  for i = 1, #RECORD_LETTERS do expire_at(Q[RECORD_LETTERS[i]], latest) end
  expire_at(Q.n, latest)
end

-- End of a write: the head of the partition and of its shadow.
local function close_both(Q, H, S, G)
  close(Q, H)
  settle_expiry(Q, H)
  if S then close(S, G) end
end

-- The shadow under rebuild gets every write too. A rebuild whose lease ran out is dropped here.
local function open_shadow(Q, H, now)
  if H.shadow == '' then return nil end
  local S = keys_of(Q.base .. '~')
  local G = H.lease > now and read_head(S)
  if G then return S, G end
  H.shadow, H.lease = '', 0
  for i = 1, #LETTERS do drop(S[LETTERS[i]]) end
  return nil
end

local function log_end(Q, H) return H.x0 + call('STRLEN', Q.x) / 4 end
