-- forget: erase a whole partition, shadow, counters and turns included
-- KEYS: head
-- ARGV:
-- Returns: how many live records it held
-- Cost: O(1) on the server's main thread; memory is freed in the background
-- Include: head
return atomically(function()
  local H, now = read_head(P), clock()
  local live = 0
  if H then live = H.n - call('ZCOUNT', P.e, '-inf', now) end
  local shadow = keys_of(P.base .. '~')
  local keys = {}
  for i = 1, #LETTERS do
    keys[2 * i - 1], keys[2 * i] = P[LETTERS[i]], shadow[LETTERS[i]]
  end
  call('UNLINK', unpack(keys))
  return live
end)
