-- adopt: put a finished rebuild in the partition's place; turns stay
-- KEYS: head
-- ARGV: plan (MessagePack map: token, last sequence number, counters, force)
-- Returns: live records, -1 when the rebuild is over, -2 when the partition shows a later commit (and `force` is not set)
-- Cost: O(1); the old keys are freed in the background
-- Include: mirrored
local plan = cmsgpack.unpack(ARGV[1])

return atomically(function()
  local Q, G = rebuilt(plan.token)
  if not Q then return -1 end
  local H = call('TYPE', P.h).ok == 'hash' and read_head(P) or nil -- a head of another type goes with the rest
  if H and H.seq > plan.last and not plan.force then return -2 end
  G.v, G.shadow, G.seq = H and H.v or 0, '', plan.last
  close(Q, G)
  for i = 1, #RECORD_LETTERS do drop(P[RECORD_LETTERS[i]]) end
  drop(P.n)
  for i = 1, #RECORD_LETTERS do rename(Q[RECORD_LETTERS[i]], P[RECORD_LETTERS[i]]) end
  settle_expiry(P, G)
  set_counters(plan.counters, G['until'])
  return G.n
end)
