-- sweep: take out postings that erased records left behind
-- KEYS: head
-- ARGV:
-- Returns: postings that are still to be taken out, in the partition and in its shadow
-- Cost: O(postings taken out), at most 512
-- Include: head erase
return atomically(function()
  local H = read_head(P)
  if not H then return 0 end
  local S, G = open_shadow(P, H, clock())
  local left = sweep_both(P, H, S, G)
  if has_buried(H, G) then close_both(P, H, S, G) end
  return left
end)
