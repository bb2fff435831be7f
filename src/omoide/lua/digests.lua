-- digests: of which texts the vectors of records are
-- KEYS: head
-- ARGV: kind, then at most 500 ids
-- Returns: per id, 8 bytes, or empty for no record or no vector of that kind | nothing for no partition
-- Cost: O(ids)
-- Include: partition
local H = glance(P)
if not H then return {} end
local rows, found = redis.call('HMGET', P.m, unpack(ARGV, 2)), {}
local same = ARGV[1] == H.vectors and H.stride > 0
for i = 1, #rows do
  local start = same and rows[i] and redis.call('GETRANGE', P.z, rows[i] * H.stride, rows[i] * H.stride + 11) or ''
  found[i] = start == string.rep('\0', 12) and '' or string.sub(start, 1, 8)
end
return found
