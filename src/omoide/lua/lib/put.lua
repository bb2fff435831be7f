-- put: give a record its row and write every index entry of it
-- Include: head erase staged statistics
--
-- `carry` says what an update keeps of the row it replaces: version, time, confidence, statistics, touch, earlier operations,
-- start and own end of its validity.

-- The base score is the importance column (f32). Without a decay field the order is that of touching.
local function decay_order(rate, base, touched)
  if not rate then return touched end
  if base > 0 then return math.log(base) + rate * (touched - EPOCH) end
  return NEVER + touched
end

-- What says nothing of a start is valid from the time of the record, at the latest from when it was stored.
local function started(time, latest) return time and math.min(time, latest) or latest end

-- `carry` has what an update keeps of the row it replaces, and which one that is (`old`; false: none, nil: look).
-- A plan may set what the store keeps: version, order, expires (ms), the end of its validity (`till`), and edges in the place of
-- those that names would make.
-- Uniqueness has been checked; the old row, if any, is erased by the caller afterwards.
local function put(Q, H, plan, foot, foot_bytes, body, carry, now)
  local before, footprint = plan.staged and staged_as(Q, H, plan.staged) or 0, false
  if before == 0 then
    bury_staged(Q, H)
  else
    forget_staged(H)
    footprint = call('HGET', Q.f, H.next)
  end
  carry.staged = before
  local row = H.next
  if row > MAX_ROW then error('FULL the partition has no rows left: reindex it', 0) end
  H.next, H.n, H.sdl = row + 1, H.n + 1, H.sdl + plan.length
  H.peak = math.max(H.peak, plan.importance)
  local attributes = pack('<I2I2I4fI4I4I4i8', plan.flags, carry.confidence or plan.confidence, plan.length, plan.importance,
    take_ordinal(Q, H, foot.session), take_ordinal(Q, H, foot.author), carry.version, plan.time or carry.time or now)
  make_room(Q.a, row, 32)
  setrange(Q.a, row * 32, attributes)
  hset(Q.m, foot.id, row, carry.old)
  hset(Q.r, row, body, false)
  hset(Q.f, row, footprint_bytes(plan.operation, carry.evicted or 0, carry.earlier, foot_bytes), footprint)
  if #foot.terms > before then append_postings(Q, row, foot.terms, plan.codes, before) end
  budget = budget - (#foot.terms - before)
  local order = plan.order or decay_order(plan.rate, plan.importance, carry.touched or now / 1000)
  zadd(Q.d, string.format('%.17g', order), row, false)
  local statistics = carry.statistics or plan.statistics
  if statistics then hset(Q.c, row, statistics, false) end
  for i = 1, #foot.unique do hset(Q.q, foot.unique[i], row) end
  name_entities(Q, row, foot.entities, not (carry.copied or plan.edges))
  local expires = carry.expires or plan.expires or (plan.ttl and now + plan.ttl)
  if expires then zadd(Q.e, string.format('%.17g', expires), row, false) end
  carry.written = put_slot(Q, H, row, plan.vectors, chosen_slot(plan, carry))
  if not plan.interval then return row, attributes, '' end
  local from, till, closed = 0, 0, nil
  if plan.validity then
    from = plan.valid_from or started(plan.time or carry.time, carry.valid_from or now)
    till = carry.own_end or plan.valid_to or OPEN
    if foot.chain then till, closed = enter(Q, foot.chain, from, foot.id, till, plan.till) end
    if till < OPEN then zadd(Q.o, string.format('%.17g', till), row, false) end
  end
  local interval = pack('<i8i8i8', expires or 0, from, till)
  setrange(Q.w, row * 24, interval)
  H.timed = row + 1
  return row, attributes, interval, closed
end

-- The edges of a record, to those of its neighbours that the shadow holds already
local function copy_edges(Q, row, S, copy)
  local rows, weights, n = edges_of(Q, row)
  for i = 1, n do
    local neighbour = call('HGET', S.m, footprint_of(Q, rows[i]).id)
    if neighbour then add_edge(S, copy, tonumber(neighbour), weights[i]) end
  end
end
