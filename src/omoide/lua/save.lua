-- save: write one record with all its index entries, replacing the one of the same id
-- KEYS: head
-- ARGV: plan (MessagePack map; `staged`: the name under which postings are staged), footprint (from the id on), body
--   (MessagePack map), operation id (8 bytes), statistics of a new record (36 bytes, or empty for the model's prior), slot of
--   its vector (whole, its digest, or empty)
-- Returns: status, version, created, evicted, duplicate of | gen, v, row, next, n, sdl, log end, now, attributes, interval,
--   {row, terms} of each erased record, id of the version that ends where this one starts, {row, interval} of each whose end changed,
--   slot (`1` as given, the one kept, or empty), postings that are still to be taken out (see sweep), how many staged ones
--   it took up
-- Cost: O(distinct terms), O(64) for each edge that it brings, O(log N) for its place among versions; up to 16 due and 16
--   surplus records erased, of their postings what is within 512 with its own
-- Include: put records
local plan, foot_bytes, body = cmsgpack.unpack(ARGV[1]), ARGV[2], ARGV[3]
local foot = parts_of(foot_bytes, 1)
plan.operation, plan.statistics = ARGV[4], ARGV[5] ~= '' and ARGV[5] or nil
plan.slot, plan.vectors = ARGV[6] or '', plan.vectors or ''
local MOST_COPIED = 384 -- terms of a record that is written twice at once; a rebuild copies a longer one itself, at its end

local function attributes_of(row) return call('GETRANGE', P.a, row * 32, row * 32 + 31) end
local function number_of(row) return (unpack_bytes('<I4', attributes_of(row), 21)) end

-- How many writes of the record ago this operation was done, and what it evicted; nil when it is new.
local function done_before(before)
  if before.operation == plan.operation then return 0, before.evicted end
  for at = 1, #before.earlier, 10 do
    if string.sub(before.earlier, at, at + 7) == plan.operation then
      return (at - 1) / 10 + 1, unpack_bytes('<I2', before.earlier, at + 8)
    end
  end
end

-- What stands in the way: a lost race, a taken id, a record that was deleted, a deadline that is over.
local function refusal(old, now)
  local version = old and number_of(old) or 0
  if plan.expect and plan.expect ~= version then return { old and 'version' or 'deleted', version } end
  if plan.mode == 'create' and old then return { 'exists', version } end
  if plan.mode == 'update' and not old then return { 'deleted', 0 } end
  if plan.expires and plan.expires <= now then return { 'expired', 0 } end
end

-- Surplus beyond the cap goes: what is not valid any more, over longest first, then the lowest in the decay order; never
-- the row just written.
local function evict(H, S, G, row, erased, now)
  local surplus, evicted = plan.cap > 0 and math.min(16, H.n - plan.cap) or 0, 0
  if surplus <= 0 then return 0 end
  local function take(rows)
    for i = 1, #rows do
      if evicted == surplus then return end
      if tonumber(rows[i]) ~= row then
        erase_both(P, H, S, G, rows[i], erased, true)
        evicted = evicted + 1
      end
    end
  end
  if plan.validity then take(call('ZRANGEBYSCORE', P.o, '-inf', now, 'LIMIT', 0, surplus + 1)) end
  if evicted < surplus then take(call('ZRANGE', P.d, 0, surplus - evicted)) end
  local total = tonumber(call('HGET', P.n, 'evicted') or 0) + evicted
  hset(P.n, 'evicted', string.format('%d', total))
  return evicted
end

-- The chain that a record joins and, where that is to be founded, the row it supersedes; or what stands in the way.
local function chain_for(H, before, now)
  local chain = plan.chain or (before and unkeyed(before.chain))
  if not plan.supersedes then return chain end
  local row = call('HGET', P.m, plan.supersedes)
  if not row or call('HEXISTS', P.r, row) == 0 or expired(P, row, now) then return nil, nil, { 'missing', 0 } end
  local _, _, till = interval_of(P, row)
  if till ~= OPEN then return nil, nil, { 'closed', number_of(row) } end
  local other = footprint_of(P, row).chain
  if other and (chain == other or (not chain and unkeyed(other))) then return other end
  if other or plan.chain then return nil, nil, { 'other_key', number_of(row) } end
  return chain or 's' .. string.sub(redis.sha1hex(H.gen .. ':' .. row), 1, 24), row
end

-- Make a record that has no key the first version of a chain.
local function found(Q, row, chain)
  local data = call('HGET', Q.f, row)
  local foot = parse_footprint(data)
  hset(Q.f, row, with_chain(data, 12 + #foot.earlier, chain), data)
  local _, from, till = interval_of(Q, row)
  enter(Q, chain, from, foot.id, till)
end

-- What an update keeps: the statistics, the vector of the same text, the operations before and, unless it names a time,
-- the time of the first save.
local function carried(H, old, before)
  if not old then return { version = plan.version or 1, earlier = '', old = false } end
  local operations = before.operation .. pack('<I2', before.evicted) .. before.earlier
  local _, confidence, _, _, _, _, version, time = unpack_bytes('<I2I2I4fI4I4I4i8', attributes_of(old))
  return { version = version + 1, confidence = confidence, time = time, statistics = call('HGET', P.c, old) or nil,
    earlier = string.sub(operations, 1, MOST_EARLIER * 10), old = old, valid_from = plan.validity and start_of(P, old) or nil,
    slot = slot_of(P, H, old) }
end

-- The version before, when it ends where this one starts
local function closed_by(row, foot)
  local version = foot.chain and version_of(P, row, foot)
  local before = version and beside(P, foot.chain, version.member)
  return before and version.from < before.own and before.id or ''
end

return atomically(function()
  local now = clock()
  local H = open(P, plan)
  require_shape(H, plan)
  local old = call('HGET', P.m, plan.id)
  local before = old and footprint_of(P, old)
  if before then
    local ago, evicted = done_before(before)
    if ago then
      local version = number_of(old) - ago
      return { 'repeated', version, version == 1 and 1 or 0, evicted, '', version == 1 and closed_by(old, before) or '' }
    end
  end
  local S, G = open_shadow(P, H, now)
  local erased = {}
  erase_due(P, H, S, G, now, 16, erased)
  if old and (expired(P, old, now) or call('HEXISTS', P.r, old) == 0) then
    if call('HEXISTS', P.r, old) == 1 then
      erase_both(P, H, S, G, old, erased, true)
    end
    old, before = false, nil
  end
  local refused = refusal(old, now)
  for i = 1, #foot.unique do
    local holder = not refused and call('HGET', P.q, foot.unique[i])
    if holder and holder ~= old then
      if expired(P, holder, now) then
        erase_both(P, H, S, G, holder, erased, true)
      else
        refused = { 'duplicate', number_of(holder), 0, 0, footprint_of(P, holder).id }
      end
    end
  end
  local chain, founder
  if not refused and plan.validity then chain, founder, refused = chain_for(H, before, now) end
  if refused then
    if #erased > 0 then close_both(P, H, S, G) end
    return refused
  end
  if chain then
    foot_bytes, foot.chain = with_chain(foot_bytes, 1, chain), chain
    if founder then
      local twin = S and call('HGET', S.m, plan.supersedes)
      found(P, tonumber(founder), chain)
      if twin then found(S, tonumber(twin), chain) end
    end
  end
  local carry = carried(H, old, before)
  if old and before.chain then leave(P, tonumber(old), before) end
  local row, attributes, interval, closed = put(P, H, plan, foot, foot_bytes, body, carry, now)
  local slot, staged = carry.written, carry.staged
  if old then
    move_edges(P, tonumber(old), row)
    local _, terms = erase(P, H, old)
    erased[#erased + 1] = { tonumber(old), terms }
  end
  if plan.edges then join(P, row, plan.edges) end
  local new
  local copy = S and call('HGET', S.m, plan.id)
  if S and #foot.terms <= MOST_COPIED then
    carry.copied, carry.old = true, copy
    local foot_of_copy = copy and footprint_of(S, copy)
    if copy and foot_of_copy.chain then leave(S, tonumber(copy), foot_of_copy) end
    new = put(S, G, plan, foot, foot_bytes, body, carry, now)
  end
  if copy then erase(S, G, copy) end
  if new then copy_edges(P, row, S, new) end
  if closed and not has_new_end(tonumber(call('HGET', P.m, closed))) then closed = nil end
  local evicted = evict(H, S, G, row, erased, now)
  if evicted > 0 then
    local footprint = footprint_bytes(plan.operation, evicted, carry.earlier, foot_bytes)
    hset(P.f, row, footprint)
    if new then hset(S.f, new, footprint) end
  end
  local left = sweep_both(P, H, S, G)
  close_both(P, H, S, G)
  return { 'stored', carry.version, old and 0 or 1, evicted, '', H.gen, H.v, row, H.next, H.n, H.sdl, log_end(P, H), now,
    attributes, interval, erased, closed or '', mended_rows(), slot ~= '' and slot == plan.slot and '1' or slot, left, staged }
end)
