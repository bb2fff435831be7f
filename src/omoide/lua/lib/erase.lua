-- erase: the one routine that takes a record out, with all its traces
-- Include: journal partition footprint postings graph versions vectors
local MOST_TERMS = 128 -- of records that a write takes out by the way: what is over then stays for the next one

local function footprint_of(Q, row) return parse_footprint(call('HGET', Q.f, row)) end

-- Session and author names have ordinals with a count of their records: name -> u32 ordinal, u32 count
local function take_ordinal(Q, H, name)
  if not name then return 0 end
  local data = call('HGET', Q.k, name)
  local ordinal, count
  if data then
    ordinal, count = unpack_bytes('<I4I4', data)
  else
    H.ordinals = H.ordinals + 1
    ordinal, count = H.ordinals, 0
  end
  hset(Q.k, name, pack('<I4I4', ordinal, count + 1))
  return ordinal
end

local function give_ordinal(Q, name)
  if not name then return end
  local data = call('HGET', Q.k, name)
  if not data then error('CORRUPT an ordinal is missing', 0) end
  local ordinal, count = unpack_bytes('<I4I4', data)
  if count <= 1 then hdel(Q.k, name) else hset(Q.k, name, pack('<I4I4', ordinal, count - 1)) end
end

-- Returns the id of the erased record and its terms. `seal`: it goes by itself, not by a user's will (see versions).
local function erase(Q, H, row, seal)
  row = tonumber(row)
  local foot = footprint_of(Q, row)
  hdel(Q.r, row) -- first: a server that is out of memory refuses a script whose first write may need some
  null_postings(Q, row, foot.terms)
  for i = 1, #foot.unique do
    if call('HGET', Q.q, foot.unique[i]) == tostring(row) then hdel(Q.q, foot.unique[i]) end
  end
  for i = 1, #foot.entities do forget_entity(Q, row, foot.entities[i]) end
  drop_edges(Q, row)
  give_ordinal(Q, foot.session)
  give_ordinal(Q, foot.author)
  if call('HGET', Q.m, foot.id) == tostring(row) then
    if foot.chain then leave(Q, row, foot, seal) end
    hdel(Q.m, foot.id)
  end
  hdel(Q.f, row)
  hdel(Q.c, row)
  zrem(Q.d, row)
  zrem(Q.e, row)
  zrem(Q.o, row)
  local length = unpack_bytes('<I4', call('GETRANGE', Q.a, row * 32 + 4, row * 32 + 7))
  setrange(Q.a, row * 32, '\1' .. string.rep('\0', 31))
  if call('STRLEN', Q.w) > row * 24 then setrange(Q.w, row * 24, string.rep('\0', 24)) end
  clear_slot(Q, H, row)
  tell(Q, row)
  H.n, H.dead, H.sdl = H.n - 1, H.dead + 1, H.sdl - length
  return foot.id, foot.terms
end

-- Erase in the partition and in its shadow, when there is one. `gone` collects {row, terms} for the caller's cache.
local function erase_both(Q, H, S, G, row, gone, seal)
  local id, terms = erase(Q, H, row, seal)
  local copy = S and call('HGET', S.m, id)
  if copy then erase(S, G, copy, seal) end
  gone[#gone + 1] = { tonumber(row), terms }
  return #terms
end

-- Up to `limit` records that are due; a long record counts for many, so that one write stays short.
local function erase_due(Q, H, S, G, now, limit, gone)
  local due, budget = call('ZRANGEBYSCORE', Q.e, '-inf', now, 'LIMIT', 0, limit), MOST_TERMS
  for i = 1, #due do
    if budget <= 0 then break end
    budget = budget - erase_both(Q, H, S, G, due[i], gone, true)
  end
end
