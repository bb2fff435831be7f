-- deliver: note which records a prompt was given, and count one access for each
-- KEYS: head
-- ARGV: plan (MessagePack map: turn, ids, track, alpha, beta, counters)
-- Returns: number of records that were there
-- Cost: O(records)
-- Include: put records turns
local plan = cmsgpack.unpack(ARGV[1])

local function count_access(Q, row, now)
  local alpha, beta, up, down, accesses = plan.alpha, plan.beta, 0, 0, 0
  local data = call('HGET', Q.c, row)
  if data then alpha, beta, up, down, accesses = unpack_bytes(STATISTICS, data) end
  hset(Q.c, row, pack(STATISTICS, alpha, beta, up, down, accesses + 1, now))
end

return atomically(function()
  local now = clock()
  local H = read_head(P)
  count(P, plan.counters)
  if not H then return 0 end
  local S = open_shadow(P, H, now)
  local there = {}
  local rows = #plan.ids > 0 and call('HMGET', P.m, unpack(plan.ids)) or {}
  for i = 1, #rows do
    if rows[i] then
      there[#there + 1] = plan.ids[i]
      if plan.track then
        count_access(P, rows[i], now)
        local copy = S and call('HGET', S.m, plan.ids[i])
        if copy then count_access(S, copy, now) end
      end
    end
  end
  if plan.turn ~= '' and #there > 0 then begin_turn(P, plan.turn, there, now) end
  return #there
end)
