-- forget: erase a whole partition, shadow, counters and turns included, whatever state it is in
-- KEYS: head
-- ARGV:
-- Returns: how many live records it held, as far as its head tells
-- Cost: O(1) on the server's main thread; memory is freed in the background
-- Include: head
return atomically(function()
  -- looked up so that neither a damaged head nor a key of another type stands in the way
  local held, due = redis.pcall('HGET', P.h, 'n'), redis.pcall('ZCOUNT', P.e, '-inf', clock())
  local live = (type(held) == 'string' and tonumber(held) or 0) - (type(due) == 'number' and due or 0)
  local shadow = keys_of(P.base .. '~')
  local keys = {}
  for i = 1, #LETTERS do
    keys[2 * i - 1], keys[2 * i] = P[LETTERS[i]], shadow[LETTERS[i]]
  end
  call('UNLINK', unpack(keys))
  return math.max(0, live)
end)
