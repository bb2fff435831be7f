-- erase: take records out with all their traces
-- KEYS: head
-- ARGV: ids (MessagePack list), at most 4
-- Returns: gen, v, next, n, sdl, log end, 1 per id that was there or else 0,
--   {row, terms} of each erased record, {row, interval} of each version whose end changed, postings that are still to be
--   taken out (see sweep) | nothing for no partition
-- Cost: O(distinct terms of the records), at most 512 postings taken out
-- Include: head erase records
local ids = cmsgpack.unpack(ARGV[1])

return atomically(function()
  local now = clock()
  local H = read_head(P)
  if not H then return {} end
  check_companions(P, H)
  local S, G = open_shadow(P, H, now)
  local there, taken = {}, {}
  local rows = call('HMGET', P.m, unpack(ids))
  for i = 1, #ids do
    there[i] = 0
    if rows[i] and call('HEXISTS', P.r, rows[i]) == 1 then
      if not expired(P, rows[i], now) then there[i] = 1 end
      erase_both(P, H, S, G, rows[i], taken)
    end
  end
  local left = sweep_both(P, H, S, G)
  if #taken > 0 or has_buried(H, G) then close_both(P, H, S, G) end
  return { H.gen, H.v, H.next, H.n, H.sdl, log_end(P, H), there, taken, mended_rows(), left }
end)
