-- swap: put a finished shadow in the partition's place; edges, counters and turns stay
-- KEYS: head
-- ARGV: token
-- Returns: live records, -1 when the rebuild is over, -2 where records wait to be copied
-- Cost: O(1); the old keys are freed in the background
-- Include: head erase
return atomically(function()
  local now = clock()
  local H = read_head(P)
  local S, G
  if H then S, G = open_shadow(P, H, now) end
  if not S or H.shadow ~= ARGV[1] then return -1 end
  local function visible(Q, head) return head.n - call('ZCOUNT', Q.e, '-inf', now) end
  if visible(S, G) ~= visible(P, H) then
    for row = tonumber(call('HGET', S.h, 'copied')) + 1, H.next - 1 do
      if call('HEXISTS', P.r, row) == 1 then return -2 end
    end
    error('CORRUPT the rebuilt partition holds another number of records', 0)
  end
  G.v, G.shadow, G.lease = H.v, '', 0
  close(S, G)
  hdel(S.h, 'copied')
  for i = 1, #RECORD_LETTERS do drop(P[RECORD_LETTERS[i]]) end
  for i = 1, #RECORD_LETTERS do rename(S[RECORD_LETTERS[i]], P[RECORD_LETTERS[i]]) end
  settle_expiry(P, G)
  return G.n
end)
