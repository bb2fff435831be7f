-- stage: put in postings of a long record, before the command that stores it
-- KEYS: head
-- ARGV: plan (MessagePack map: fingerprint, name, first, terms, codes, token of a rebuild into whose copy the record goes)
-- Returns: postings that are staged, 0 where there is no such partition, copy or shape
-- Cost: O(terms)
-- Include: head staged
local plan = cmsgpack.unpack(ARGV[1])

return atomically(function()
  local H = read_head(P)
  if not H then return 0 end
  local Q = P
  if plan.token then
    local S, G = open_shadow(P, H, clock())
    if not S or H.shadow ~= plan.token then return 0 end
    Q, H = S, G
  end
  if H.fingerprint ~= plan.fingerprint then return 0 end
  local count = stage(Q, H, plan.name, plan.first, plan.terms, plan.codes)
  if H.buried then close(Q, H) end
  return count
end)
