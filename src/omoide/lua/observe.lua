-- observe: outcomes of many records: confidence, touch, access, links, counters
-- KEYS: head
-- ARGV: plan (MessagePack map: turn, evidence = list of {id, support, against, touch, access}, alpha, beta, cap,
--   linked ids, link, mark (1 outcome, 2 echo), counters = list of {name, delta})
-- Returns: ids, state of each
-- Cost: O(records + pairs of linked records); each list of edges is read and written once
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
  if data then
    if #data ~= 36 then error('CORRUPT statistics are not what was written', 0) end
    alpha, beta, up, down, accesses, accessed = unpack_bytes(STATISTICS, data)
  end
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
  if touch and plan.decays then
    local base = unpack_bytes('<f', call('GETRANGE', Q.a, row * 32 + 8, row * 32 + 11))
    zadd(Q.d, string.format('%.17g', decay_order(plan.rate, base, now / 1000)), row)
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

-- One item per record: an item without an id stands for every record of the turn.
local function expand(evidence, turn)
  local items = {}
  for i = 1, #evidence do
    local id, support, against, touch, access = unpack(evidence[i])
    if id ~= '' then
      items[#items + 1] = evidence[i]
    else
      local ids = {}
      for name in pairs(turn and turn.ids or {}) do ids[#ids + 1] = name end
      table.sort(ids)
      for j = 1, #ids do
        items[#items + 1] = { ids[j], support, against, touch, access }
        if plan.link > 0 and j <= 32 then plan.linked[#plan.linked + 1] = ids[j] end
      end
    end
  end
  return items
end

-- Whether a record may take this outcome: it is there, and of the turn, and was not told yet.
local function standing(id, turn, now)
  local row = call('HGET', P.m, id)
  if not row or expired(P, row, now) then return 'missing' end
  if plan.turn then
    local told = turn and turn.ids[id]
    if not told then return 'missing' end
    if math.floor(told / plan.mark) % 2 == 1 then return 'repeated' end
    turn.ids[id] = told + plan.mark
  end
  return 'applied', tonumber(row)
end

return atomically(function()
  local now = clock()
  local H = read_head(P)
  local turn = H and plan.turn and read_turn(P, plan.turn, now)
  local items, ids, states, applied = expand(plan.evidence, turn), {}, {}, {}
  count(P, plan.counters)
  for i = 1, #items do ids[i], states[i] = items[i][1], 'missing' end
  if not H then return { ids, states } end
  check_companions(P, H)
  local S, G = open_shadow(P, H, now)
  local changed = false
  for i = 1, #items do
    local state, row = standing(ids[i], turn, now)
    states[i] = state
    if row then
      adjust(P, row, items[i], now)
      local copy = S and call('HGET', S.m, ids[i])
      if copy then adjust(S, tonumber(copy), items[i], now) end
      applied[ids[i]], changed = true, true
    end
  end
  local linked = {}
  for i = 1, #plan.linked do
    if applied[plan.linked[i]] then linked[#linked + 1] = plan.linked[i] end
  end
  if plan.link > 0 and #linked > 1 then
    link_all(P, rows_of(P, linked), plan.link)
    if S then link_all(S, rows_of(S, linked), plan.link) end
  end
  if changed then
    if turn then store_turn(P, plan.turn, turn) end
    close_both(P, H, S, G)
  end
  return { ids, states }
end)
