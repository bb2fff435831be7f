-- load: add many records to a copy that nobody reads yet
-- KEYS: head
-- ARGV: plan (MessagePack map: token, interval, vectors, rows), then for each row operations, footprint, body, slot (see lib/mirrored.lua)
-- Returns: how many were added, those that are there already left out; -1 when the rebuild is over
-- Cost: O(distinct terms of the records), each term read and written once
-- Include: mirrored
--
-- Nothing is taken back when it fails: the copy is dropped then. Every list of postings, every hash and every sorted set is
-- written once for all records together.
local plan = cmsgpack.unpack(ARGV[1])
local Q, H = rebuilt(plan.token)
if not Q then return -1 end

-- Pairs (or scores and members) for one key, sent 500 at a time
local function writer(key, sorted)
  local held, n = {}, 0
  local function flush()
    if n > 0 and sorted then call('ZADD', key, unpack(held, 1, n)) end
    if n > 0 and not sorted then call('HSET', key, unpack(held, 1, n)) end
    n = 0
  end
  local function add(first, second)
    if n == 1000 then flush() end
    held[n + 1], held[n + 2] = first, second
    n = n + 2
  end
  return add, flush
end

-- A tail with more postings after it; what is full is sealed on the way.
local function longer(term, tail, data)
  local at = 1
  if not tail then tail, at = string.sub(data, 1, SEALED_BYTES), SEALED_BYTES + 1 end
  while at <= #data do
    local start = unpack_bytes('>I4', tail) >= MARK and 13 or 1
    local room = SEALED_BYTES - (#tail - start + 1)
    if room == 0 then
      local sealed, nulls, last = parse_tail(tail)
      local name, block = segment_name(term, math.floor(sealed / 16)), string.sub(tail, start)
      call('HSET', Q.s, name, (sealed % 16 > 0 and call('HGET', Q.s, name) or '') .. block)
      tail = pack('>I4I4I4', MARK + sealed + 1, nulls, last_row(block, 1) or last)
      room = SEALED_BYTES
    end
    tail = tail .. string.sub(data, at, at + room - 1)
    at = at + room
  end
  return tail
end

-- Session and author names: name -> ordinal and count, read once and written once
local ordinals = {}
local function ordinal_of(name)
  if not name then return 0 end
  local held = ordinals[name]
  if not held then
    local data = call('HGET', Q.k, name)
    if data then
      held = { unpack_bytes('<I4I4', data) }
    else
      H.ordinals = H.ordinals + 1
      held = { H.ordinals, 0 }
    end
    ordinals[name] = held
  end
  held[2] = held[2] + 1
  return held[1]
end

local set_id, end_ids = writer(Q.m)
local set_body, end_bodies = writer(Q.r)
local set_foot, end_feet = writer(Q.f)
local set_statistics, end_statistics = writer(Q.c)
local set_unique, end_unique = writer(Q.q)
local set_order, end_orders = writer(Q.d, true)
local set_expiry, end_expiries = writer(Q.e, true)
local first, attributes, intervals, postings, terms, named = H.next, {}, {}, {}, {}, {}

local function add(record, foot, at, row)
  local base = row * 1024
  attributes[#attributes + 1] = pack('<I2I2I4fI4I4I4i8', record.flags, record.confidence, record.length, record.importance,
    ordinal_of(foot.session), ordinal_of(foot.author), record.version, record.time)
  set_id(record.id, row)
  set_body(row, ARGV[at + 2])
  set_foot(row, footprint_bytes(string.sub(ARGV[at], 1, 8), unpack_bytes('<I2', ARGV[at], 9),
    string.sub(ARGV[at], 11), ARGV[at + 1]))
  for i = 1, #foot.terms do
    local term = foot.terms[i]
    local list = postings[term]
    if not list then
      list = {}
      postings[term], terms[#terms + 1] = list, term
    end
    list[#list + 1] = pack('>I4', base + record.codes[i])
  end
  set_order(string.format('%.17g', record.order), row)
  if record.alpha then set_statistics(row, packed_statistics(record)) end
  for i = 1, #foot.unique do set_unique(foot.unique[i], row) end
  for i = 1, #foot.entities do
    local name = foot.entities[i]
    named[name] = (named[name] or '') .. pack('<I4', row)
  end
  put_slot(Q, H, row, plan.vectors or '', #ARGV[at + 3] > 8 and ARGV[at + 3] or '')
  if record.expires then set_expiry(string.format('%.17g', record.expires), row) end
  if plan.interval then intervals[#intervals + 1] = pack('<i8i8i8', record.expires or 0, 0, 0) end
  H.next, H.n, H.sdl = row + 1, H.n + 1, H.sdl + record.length
  H.peak = math.max(H.peak, record.importance)
end

local ids = {}
for i = 1, #plan.rows do ids[i] = plan.rows[i].id end
local there = hmget(Q.m, ids)
for i = 1, #plan.rows do
  if not there[i] then
    if H.next > MAX_ROW then error('FULL the partition has no rows left', 0) end
    add(plan.rows[i], parts_of(ARGV[4 * i - 1], 1), 4 * i - 2, H.next)
  end
end

local tails = hmget(Q.t, terms)
local set_tail, end_tails = writer(Q.t)
for i = 1, #terms do set_tail(terms[i], longer(terms[i], tails[i], table.concat(postings[terms[i]]))) end
for name, data in pairs(named) do
  local field = 'e:' .. name
  call('HSET', Q.g, field, string.sub((call('HGET', Q.g, field) or '') .. data, -4 * MAX_NAMED))
end
for name, held in pairs(ordinals) do call('HSET', Q.k, name, pack('<I4I4', held[1], held[2])) end
if #attributes > 0 then
  call('SETRANGE', Q.a, first * 32, table.concat(attributes))
  if plan.interval then call('SETRANGE', Q.w, first * 24, table.concat(intervals)) end
end
for _, finish in ipairs({ end_ids, end_bodies, end_feet, end_statistics, end_unique, end_orders, end_expiries, end_tails }) do
  finish()
end
close(Q, H)
return #attributes
