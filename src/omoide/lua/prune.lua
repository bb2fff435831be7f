-- prune: erase records whose time is over
-- KEYS: head
-- ARGV: limit, at most 64
-- Returns: how many went, postings that are still to be taken out (see sweep)
-- Cost: O(distinct terms of the records), at most 512 postings taken out
-- Include: head erase
return atomically(function()
  local now = clock()
  local H = read_head(P)
  if not H then return { 0, 0 } end
  local S, G = open_shadow(P, H, now)
  local erased = {}
  erase_due(P, H, S, G, now, tonumber(ARGV[1]), erased)
  local left = sweep_both(P, H, S, G)
  if #erased > 0 or has_buried(H, G) then close_both(P, H, S, G) end
  return { #erased, left }
end)
