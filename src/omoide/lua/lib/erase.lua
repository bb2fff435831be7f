-- erase: the one routine that takes a record out, with all its traces
-- Include: journal partition remains postings staged graph versions vectors
local budget = 512 -- postings that this command may still put in and take out; what is not taken out stays for later ones

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
  if #foot.terms <= budget then
    budget = budget - #foot.terms
    null_postings(Q, row, foot.terms)
    hdel(Q.f, row)
  else
    H.remains = pack(REMAIN, row, 0, #foot.terms) .. H.remains -- what is staged stays the last
  end
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

-- Erase in the partition and in its shadow, when there is one. `taken` collects {row, terms} for the caller's cache.
-- What is sealed in the partition is in the shadow too, whichever of the versions were copied already.
local function erase_both(Q, H, S, G, row, taken, seal)
  local sealed = S and seal and sealed_by(Q, row, footprint_of(Q, row))
  local id, terms = erase(Q, H, row, seal)
  local copy = S and call('HGET', S.m, id)
  if copy then erase(S, G, copy, seal) end
  local twin = sealed and call('HGET', S.m, sealed.id)
  if twin then seal_row(S, twin, footprint_of(S, twin), sealed) end
  taken[#taken + 1] = { tonumber(row), terms }
end

-- Go on with what is left of records that are gone, as far as the budget reaches; the postings that stay. It is no write to
-- readers, for whom such a row is dead already, unless it made one (`buried`).
local function sweep(Q, H)
  local before = H.remains
  while budget > 0 and H.remains ~= '' do
    local row, done, terms = unpack_bytes(REMAIN, H.remains)
    local data, upto = call('HGET', Q.f, row), math.min(terms, done + budget)
    hdel(Q.f, row, data) -- first, as in `erase`
    if row == H.next then bury_staged(Q, H) end
    null_postings(Q, row, { unpack(parse_footprint(data).terms, done + 1, upto) })
    budget = budget - (upto - done)
    H.remains = string.sub(H.remains, REMAIN_BYTES + 1)
    if upto < terms then
      hset(Q.f, row, data, false)
      H.remains = pack(REMAIN, row, upto, terms) .. H.remains
    end
  end
  if H.remains ~= before then hset(Q.h, 'remains', H.remains) end
  return left_in(H)
end

-- The same for a partition and its shadow
local function sweep_both(Q, H, S, G) return sweep(Q, H) + (S and sweep(S, G) or 0) end

local function has_buried(H, G) return H.buried or (G and G.buried) end

-- Up to `limit` records that are due
local function erase_due(Q, H, S, G, now, limit, taken)
  local due = call('ZRANGEBYSCORE', Q.e, '-inf', now, 'LIMIT', 0, limit)
  for i = 1, #due do erase_both(Q, H, S, G, due[i], taken, true) end
end
