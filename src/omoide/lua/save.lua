-- save: write one record with all its index entries, replacing the one of the same id
-- KEYS: head
-- ARGV: plan (MessagePack map), footprint (from the id on), body (MessagePack map), operation id (8 bytes),
--   statistics of a new record (36 bytes, or empty for the model's prior)
-- Returns: status, version, created, evicted, duplicate of | gen, v, row, next, n, sdl, log end, now, attributes, interval, {row, terms} of each erased record
-- Cost: O(distinct terms), and O(64) for each edge that it brings; up to 16 due and 16 surplus records erased
-- Include: put records
local plan, foot_bytes, body = cmsgpack.unpack(ARGV[1]), ARGV[2], ARGV[3]
local foot = parts_of(foot_bytes, 1)
plan.operation, plan.statistics = ARGV[4], ARGV[5] ~= '' and ARGV[5] or nil

local function attributes_of(row) return call('GETRANGE', P.a, row * 32, row * 32 + 31) end
local function version_of(row) return (unpack_bytes('<I4', attributes_of(row), 21)) end

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
  local version = old and version_of(old) or 0
  if plan.expect and plan.expect ~= version then return { old and 'version' or 'deleted', version } end
  if plan.mode == 'create' and old then return { 'exists', version } end
  if plan.mode == 'update' and not old then return { 'deleted', 0 } end
  if plan.expires and plan.expires <= now then return { 'expired', 0 } end
end

-- Surplus beyond the cap goes, lowest in the decay order first, never the row just written.
local function evict(H, S, G, row, erased)
  local surplus, evicted, budget = plan.cap > 0 and math.min(16, H.n - plan.cap) or 0, 0, 2048
  if surplus <= 0 then return 0 end
  local lowest = call('ZRANGE', P.d, 0, surplus)
  for i = 1, #lowest do
    if evicted == surplus or budget <= 0 then break end
    if tonumber(lowest[i]) ~= row then
      budget = budget - erase_both(P, H, S, G, lowest[i], erased)
      evicted = evicted + 1
    end
  end
  local total = tonumber(call('HGET', P.n, 'evicted') or 0) + evicted
  hset(P.n, 'evicted', string.format('%d', total))
  return evicted
end

-- What an update keeps: the statistics, the operations before and, unless it names a time, the time of the first save.
local function carried(old, before)
  if not old then return { version = plan.version or 1, earlier = '', old = false } end
  local operations = before.operation .. pack('<I2', before.evicted) .. before.earlier
  local _, confidence, _, _, _, _, version, time = unpack_bytes('<I2I2I4fI4I4I4i8', attributes_of(old))
  return { version = version + 1, confidence = confidence, time = time, statistics = call('HGET', P.c, old) or nil,
    earlier = string.sub(operations, 1, MOST_EARLIER * 10), old = old }
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
      local version = version_of(old) - ago
      return { 'repeated', version, version == 1 and 1 or 0, evicted, '' }
    end
  end
  local S, G = open_shadow(P, H, now)
  local erased = {}
  erase_due(P, H, S, G, now, 16, erased)
  if old and (expired(P, old, now) or call('HEXISTS', P.r, old) == 0) then
    if call('HEXISTS', P.r, old) == 1 then
      erase_both(P, H, S, G, old, erased)
    end
    old = false
  end
  local refused = refusal(old, now)
  for i = 1, #foot.unique do
    local holder = not refused and call('HGET', P.q, foot.unique[i])
    if holder and holder ~= old then
      if expired(P, holder, now) then
        erase_both(P, H, S, G, holder, erased)
      else
        refused = { 'duplicate', version_of(holder), 0, 0, footprint_of(P, holder).id }
      end
    end
  end
  if refused then
    if #erased > 0 then close_both(P, H, S, G) end
    return refused
  end
  local carry = carried(old, before)
  local row, attributes, interval = put(P, H, plan, foot, foot_bytes, body, carry, now)
  if old then
    move_edges(P, tonumber(old), row)
    local _, terms = erase(P, H, old)
    erased[#erased + 1] = { tonumber(old), terms }
  end
  if plan.edges then join(P, row, plan.edges) end
  local new
  if S then
    local copy = call('HGET', S.m, plan.id)
    carry.copied, carry.old = true, copy
    new = put(S, G, plan, foot, foot_bytes, body, carry, now)
    if copy then erase(S, G, copy) end
    copy_edges(P, row, S, new)
  end
  local evicted = evict(H, S, G, row, erased)
  if evicted > 0 then
    local footprint = footprint_bytes(plan.operation, evicted, carry.earlier, foot_bytes)
    hset(P.f, row, footprint)
    if S then hset(S.f, new, footprint) end
  end
  close_both(P, H, S, G)
  return { 'stored', carry.version, old and 0 or 1, evicted, '', H.gen, H.v, row, H.next, H.n, H.sdl, log_end(P, H), now,
    attributes, interval, erased }
end)
