-- prune: erase records whose time is over
-- KEYS: head
-- ARGV: limit, at most 64
-- Returns: how many went
-- Cost: O(distinct terms of the records); stops after 128 terms
-- Include: head erase
return atomically(function()
  local now = clock()
  local H = read_head(P)
  if not H then return 0 end
  local S, G = open_shadow(P, H, now)
  local erased = {}
  erase_due(P, H, S, G, now, tonumber(ARGV[1]), erased)
  if #erased > 0 then
    close_both(P, H, S, G)
  end
  return #erased
end)
