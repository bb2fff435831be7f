-- mirrored: setting what the authoritative rows say; nothing is decided here
-- Include: put records
--
-- The rows come as a list in the plan and four arguments each: operations (10 bytes a write, latest first), footprint
-- (from the id on), body and the slot of the vector (whole, its digest, or empty). A rebuild writes beside the partition, under the letters with `^` before them.

local function rebuilt_keys() return keys_of(P.base .. '^') end

-- The copy under rebuild, when it is still this one
local function rebuilt(token)
  local Q = rebuilt_keys()
  local H = read_head(Q)
  if H and H.shadow == token then return Q, H end
end

local function packed_statistics(state)
  if not state.alpha then return nil end
  return pack(STATISTICS, state.alpha, state.beta, state.up, state.down, state.accesses, state.accessed)
end

local function set_record(Q, H, plan, record, at)
  local operations, foot_bytes, body = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local foot = parts_of(foot_bytes, 1)
  record.rate, record.interval, record.validity = plan.rate, plan.interval, plan.validity
  record.vectors, record.slot = plan.vectors or '', ARGV[at + 3]
  record.operation = string.sub(operations, 1, 8)
  local old = call('HGET', Q.m, record.id)
  local before = old and plan.validity and footprint_of(Q, old)
  if before and before.chain then leave(Q, tonumber(old), before, TOLD) end
  local row = put(Q, H, record, foot, foot_bytes, body, {
    version = record.version, statistics = packed_statistics(record), slot = old and slot_of(Q, H, old),
    evicted = unpack_bytes('<I2', operations, 9), earlier = string.sub(operations, 11), copied = true, old = old,
  }, 0)
  if old then
    move_edges(Q, tonumber(old), row)
    erase(Q, H, old)
  end
end

-- What outcomes and touches changed; the record is there, or the partition is not what it should be.
local function set_state(Q, state)
  local row = tonumber(call('HGET', Q.m, state.id))
  if not row then error('BEHIND a record is missing', 0) end
  local statistics = packed_statistics(state)
  if statistics then hset(Q.c, row, statistics) end
  local confidence = pack('<I2', state.confidence)
  if call('GETRANGE', Q.a, row * 32 + 2, row * 32 + 3) ~= confidence then
    setrange(Q.a, row * 32 + 2, confidence)
    tell(Q, row)
  end
  zadd(Q.d, string.format('%.17g', state.order), row)
end

-- When a version is valid: its end, own end and chain. From when is told with the record.
local function set_span(Q, span)
  local row = tonumber(call('HGET', Q.m, span.id) or error('BEHIND a record is missing', 0))
  local data = call('HGET', Q.f, row)
  local foot = parse_footprint(data)
  if foot.chain then leave(Q, row, foot, TOLD) end
  if foot.chain ~= span.chain then hset(Q.f, row, with_chain(data, 12 + #foot.earlier, span.chain), data) end
  if span.chain then enter(Q, span.chain, span.valid_from, span.id, span.valid_to, span.till) end
  set_end(Q, span, span.till)
end

-- All edges of a record: id, then other id and weight in turn
local function set_edges(Q, list)
  local row = tonumber(call('HGET', Q.m, list[1]))
  if not row then return end
  local rows, weights, n = {}, {}, 0
  for at = 2, #list, 2 do
    local other = tonumber(call('HGET', Q.m, list[at]))
    if other then
      n = n + 1
      rows[n], weights[n] = other, list[at + 1]
    end
  end
  store_edges(Q, row, rows, weights)
end

local function set_all(Q, H, plan)
  for i = 1, #plan.erased do
    local row = call('HGET', Q.m, plan.erased[i])
    if row then erase(Q, H, row, TOLD) end
  end
  for i = 1, #plan.rows do set_record(Q, H, plan, plan.rows[i], 4 * i - 2) end
  for i = 1, #plan.states do set_state(Q, plan.states[i]) end
  for i = 1, #plan.spans do set_span(Q, plan.spans[i]) end
  for i = 1, #plan.edges do set_edges(Q, plan.edges[i]) end
end

-- Counters stand beside the partition: a rebuild sets those of the partition itself.
local function set_counters(counters, till)
  for i = 1, #counters do hset(P.n, counters[i][1], counters[i][2]) end
  if #counters > 0 then expire_at(P.n, till) end
end
