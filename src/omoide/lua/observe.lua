-- observe: outcomes of many records: confidence, touch, access, links, counters
-- KEYS: head
-- ARGV: plan (MessagePack map: turn, evidence = list of {id, support, against, touch, access}, alpha, beta, cap,
--   linked ids, link, counters = list of {name, delta})
-- Returns: state of each piece of evidence
-- Cost: O(records + pairs of linked records)
-- Include: put records turns
local plan = cmsgpack.unpack(ARGV[1])

-- Beta evidence: exact mean up to the cap, exponential forgetting beyond it.
local function believe(alpha, beta, support, against)
  alpha, beta = alpha + support, beta + against
  if alpha + beta > plan.cap then
    local scale = plan.cap / (alpha + beta)
    alpha, beta = alpha * scale, beta * scale
  end
  return alpha, beta
end

local function adjust(Q, row, item, now)
  local alpha, beta, up, down, accesses, accessed = plan.alpha, plan.beta, 0, 0, 0, 0
  local data = call('HGET', Q.c, row)
  if data then alpha, beta, up, down, accesses, accessed = unpack_bytes(STATISTICS, data) end
  local _, support, against, touch, access = unpack(item)
  if support > 0 or against > 0 then
    alpha, beta = believe(alpha, beta, support, against)
    if support > 0 then up = up + 1 end
    if against > 0 then down = down + 1 end
    setrange(Q.a, row * 32 + 2, pack('<I2', math.floor(alpha / (alpha + beta) * 65535 + 0.5)))
    tell(Q, row)
  end
  if access then accesses, accessed = accesses + 1, now end
  if support > 0 or against > 0 or access then
    hset(Q.c, row, pack(STATISTICS, alpha, beta, up, down, accesses, accessed))
  end
  if touch and plan.rate then
    local base = unpack_bytes('<f', call('GETRANGE', Q.a, row * 32 + 8, row * 32 + 11))
    zadd(Q.d, string.format('%.17g', decay_order(plan.rate, base, now / 1000)), row)
  end
end

local function link_all(Q, rows)
  for i = 1, #rows do
    for j = i + 1, #rows do add_edge(Q, rows[i], rows[j], plan.link) end
  end
end

-- Every id of a list that has a live row, as rows of Q
local function rows_of(Q, ids)
  local rows = {}
  for i = 1, #ids do
    local row = call('HGET', Q.m, ids[i])
    if row then rows[#rows + 1] = tonumber(row) end
  end
  return rows
end

return atomically(function()
  local now = clock()
  local H, states = read_head(P), {}
  if not H then
    for i = 1, #plan.evidence do states[i] = 'missing' end
    count(P, plan.counters)
    return states
  end
  check_companions(P, H)
  local S, G = open_shadow(P, H, now)
  local turn, changed = plan.turn and read_turn(P, plan.turn, now), false
  for i = 1, #plan.evidence do
    local item = plan.evidence[i]
    local id = item[1]
    local row = call('HGET', P.m, id)
    if not row or expired(P, row, now) then
      states[i] = 'missing'
    elseif plan.turn and not (turn and turn.ids[id]) then
      states[i] = 'missing'
    elseif turn and turn.ids[id] == 1 then
      states[i] = 'repeated'
    else
      if turn then turn.ids[id] = 1 end
      adjust(P, tonumber(row), item, now)
      local copy = S and call('HGET', S.m, id)
      if copy then adjust(S, tonumber(copy), item, now) end
      states[i], changed = 'applied', true
    end
  end
  if changed and plan.link > 0 and #plan.linked > 1 then
    link_all(P, rows_of(P, plan.linked))
    if S then link_all(S, rows_of(S, plan.linked)) end
  end
  if turn and changed then store_turn(P, plan.turn, turn) end
  count(P, plan.counters)
  if changed then
    close_both(P, H, S, G)
  end
  return states
end)
