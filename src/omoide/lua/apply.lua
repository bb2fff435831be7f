-- apply: set what the authoritative rows say, if it is what comes next
-- KEYS: head
-- ARGV: plan (MessagePack map: first and last sequence number, begins, drops, token, format, fingerprint, rate, interval,
--   validity, vectors, rows, states, spans, erased, edges, counters), then for each row its operations, footprint, body and slot (see lib/mirrored.lua)
-- Returns: the sequence number that is applied now, -1 where no partition is that it could follow; postings that are still to
--   be taken out (see sweep)
-- Cost: O(distinct terms of the records)
-- Include: mirrored
local plan = cmsgpack.unpack(ARGV[1])

return atomically(function()
  if plan.token then
    local Q, H = rebuilt(plan.token)
    if not Q then return { -1, 0 } end
    set_all(Q, H, plan)
    H.seq = plan.last
    sweep(Q, H)
    close(Q, H)
    return { H.seq, 0 }
  end
  local H = read_head(P)
  if H and H.seq >= plan.last then return { H.seq, left_in(H) } end
  if plan.drops then
    for i = 1, #LETTERS do drop(P[LETTERS[i]]) end
    return { plan.last, 0 }
  end
  if not H and not plan.begins then return { -1, 0 } end
  if H and plan.first > H.seq + 1 then return { H.seq, left_in(H) } end
  H = open(P, plan)
  require_shape(H, plan)
  set_all(P, H, plan)
  H.seq = plan.last
  local left = sweep(P, H)
  close(P, H)
  settle_expiry(P, H)
  set_counters(plan.counters, H['until'])
  return { H.seq, left }
end)
