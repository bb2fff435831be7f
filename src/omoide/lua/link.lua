-- link: change the weight of the edge between two records
-- KEYS: head
-- ARGV: first id, second id, delta
-- Returns: the new weight as text, or nothing when one of them is not there
-- Cost: O(edges of both), at most 64 each
-- Include: head erase records
return atomically(function()
  local now = clock()
  local H = read_head(P)
  local rows = H and call('HMGET', P.m, ARGV[1], ARGV[2])
  if not rows or not rows[1] or not rows[2] or rows[1] == rows[2] then return false end
  if expired(P, rows[1], now) or expired(P, rows[2], now) then return false end
  local S, G = open_shadow(P, H, now)
  local delta = tonumber(ARGV[3])
  local weight = add_edge(P, tonumber(rows[1]), tonumber(rows[2]), delta)
  local copies = S and call('HMGET', S.m, ARGV[1], ARGV[2])
  if copies and copies[1] and copies[2] then add_edge(S, tonumber(copies[1]), tonumber(copies[2]), delta) end
  close_both(P, H, S, G)
  return string.format('%.9g', weight)
end)
