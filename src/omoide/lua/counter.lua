-- counter: add to a named counter of the partition
-- KEYS: head
-- ARGV: name, delta
-- Returns: the new value as text
-- Cost: O(1)
-- Include: journal partition
return atomically(function()
  local old = tonumber(call('HGET', P.n, ARGV[1]) or 0)
  local new = old + tonumber(ARGV[2])
  if new > 9007199254740991 or new < -9007199254740991 then error('OVERFLOW the counter leaves 53 bits', 0) end
  hset(P.n, ARGV[1], string.format('%d', new))
  expire_at(P.n, tonumber(call('HGET', P.h, 'until') or 0))
  return string.format('%d', new)
end)
