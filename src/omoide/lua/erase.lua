-- erase: take records out with all their traces
-- KEYS: head
-- ARGV: ids (MessagePack list), at most 16
-- Returns: gen, v, next, n, sdl, log end, erased rows (0 where there was none) joined by commas | nothing for no partition
-- Cost: O(distinct terms of the records)
-- Include: head erase records
local ids = cmsgpack.unpack(ARGV[1])

return atomically(function()
  local now = clock()
  local H = read_head(P)
  if not H then return {} end
  check_companions(P, H)
  local S, G = open_shadow(P, H, now)
  local erased, any = {}, false
  local rows = call('HMGET', P.m, unpack(ids))
  for i = 1, #ids do
    if rows[i] and call('HEXISTS', P.r, rows[i]) == 1 then
      local hidden = expired(P, rows[i], now)
      erase_both(P, H, S, G, rows[i])
      erased[i], any = hidden and 0 or rows[i], true
    else
      erased[i] = 0
    end
  end
  if any then
    close_both(P, H, S, G)
  end
  return { H.gen, H.v, H.next, H.n, H.sdl, log_end(P, H), table.concat(erased, ',') }
end)
