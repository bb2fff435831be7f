-- restore: begin a rebuild of the partition from the authoritative rows, beside what is there
-- KEYS: head
-- ARGV: plan (MessagePack map: token, format, fingerprint, rate)
-- Returns: 1
-- Cost: O(1)
-- Include: head
local plan = cmsgpack.unpack(ARGV[1])

return atomically(function()
  local Q = keys_of(P.base .. '^')
  for i = 1, #LETTERS do drop(Q[LETTERS[i]]) end
  local H = open(Q, plan)
  H.shadow = plan.token
  close(Q, H)
  return 1
end)
