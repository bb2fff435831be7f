-- deliver: note which records a prompt was given, and count one access for each
-- KEYS: head
-- ARGV: plan (MessagePack map: turn, ttl in ms, ids, track, alpha, beta, counters)
-- Returns: number of records that were there
-- Cost: O(records)
-- Include: journal partition statistics turns
local plan = cmsgpack.unpack(ARGV[1])

-- The ids that have a row, and their rows
local function present(Q, ids)
  local names, rows = {}, {}
  local found = #ids > 0 and call('HMGET', Q.m, unpack(ids)) or {}
  for i = 1, #ids do
    if found[i] then names[#names + 1], rows[#rows + 1] = ids[i], found[i] end
  end
  return names, rows
end

local function count_accesses(Q, rows, now)
  if #rows == 0 then return end
  local held, values = call('HMGET', Q.c, unpack(rows)), {}
  for i = 1, #rows do
    local alpha, beta, up, down, accesses = plan.alpha, plan.beta, 0, 0, 0
    if held[i] then alpha, beta, up, down, accesses = unpack_bytes(STATISTICS, held[i]) end
    values[i] = pack(STATISTICS, alpha, beta, up, down, accesses + 1, now)
  end
  hset_many(Q.c, rows, values, held)
end

return atomically(function()
  local now = clock()
  local head = call('HMGET', P.h, 'n', 'shadow', 'lease', 'until')
  count(P, plan.counters)
  if not head[1] then return 0 end
  local names, rows = present(P, plan.ids)
  if plan.track then
    count_accesses(P, rows, now)
    if head[2] and head[2] ~= '' and tonumber(head[3]) > now then
      local S = keys_of(P.base .. '~')
      local _, copies = present(S, names)
      count_accesses(S, copies, now)
    end
    local at = tonumber(head[4] or 0)
    if at > 0 then expire_at(P.c, at) end
  end
  if plan.turn ~= '' and #names > 0 then begin_turn(P, plan.turn, names, now, plan.ttl) end
  return #names
end)
