-- place: the row of an id, whether it is visible or not
-- KEYS: head
-- ARGV: id
-- Returns: gen, row (0 for none) | nothing for no partition
-- Cost: O(1)
-- Include: partition
local H = glance(P)
if not H then return {} end
return { H.gen, tonumber(redis.call('HGET', P.m, ARGV[1]) or 0) }
