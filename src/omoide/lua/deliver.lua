-- deliver: note which records a prompt was given, and count one access for each
-- KEYS: head
-- ARGV: plan (MessagePack map: turn, ttl in ms, ids, track, alpha, beta, counters)
-- Returns: number of records that were there
-- Cost: O(records)
-- Include: put records turns
local plan = cmsgpack.unpack(ARGV[1])

local function count_accesses(Q, rows, now)
  local held, values = hmget(Q.c, rows), {}
  for i = 1, #rows do
    local alpha, beta, up, down, accesses = plan.alpha, plan.beta, 0, 0, 0
    if held[i] then alpha, beta, up, down, accesses = unpack_bytes(STATISTICS, held[i]) end
    values[i] = pack(STATISTICS, alpha, beta, up, down, accesses + 1, now)
  end
  if #rows > 0 then hset_many(Q.c, rows, values) end
end

return atomically(function()
  local now = clock()
  local H = read_head(P)
  count(P, plan.counters)
  if not H then return 0 end
  local S = open_shadow(P, H, now)
  local there, rows, copies = {}, {}, {}
  local found = hmget(P.m, plan.ids)
  for i = 1, #plan.ids do
    if found[i] then
      there[#there + 1], rows[#rows + 1] = plan.ids[i], found[i]
      copies[#copies + 1] = S and call('HGET', S.m, plan.ids[i]) or nil
    end
  end
  if plan.track then
    count_accesses(P, rows, now)
    if S then count_accesses(S, copies, now) end
  end
  expire_at(P.c, H['until'])
  if plan.turn ~= '' and #there > 0 then begin_turn(P, plan.turn, there, now, plan.ttl) end
  return #there
end)
