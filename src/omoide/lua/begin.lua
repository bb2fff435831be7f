-- begin: start a rebuild of the partition into its shadow, or take up one that is under way
-- KEYS: head
-- ARGV: plan (MessagePack map: format, fingerprint, rate, lease in ms, token, vectors)
-- Returns: token, row to go on after, live records | nothing for no partition
-- Cost: O(1)
-- Include: head
local plan = cmsgpack.unpack(ARGV[1])

return atomically(function()
  local now = clock()
  local H = read_head(P)
  if not H then return {} end
  check_companions(P, H)
  local S, G = open_shadow(P, H, now)
  if S and (G.format ~= plan.format or G.fingerprint ~= plan.fingerprint) then
    H.lease = 0
    S = open_shadow(P, H, now)
  end
  if not S then
    S = keys_of(P.base .. '~')
    for i = 1, #LETTERS do drop(S[LETTERS[i]]) end
    G = open(S, plan)
    G.vectors = plan.vectors or ''
    close(S, G)
    H.shadow = plan.token
    hset(S.h, 'copied', 0)
  end
  H.lease = now + plan.lease
  close(P, H)
  return { H.shadow, tonumber(call('HGET', S.h, 'copied')), H.n }
end)
