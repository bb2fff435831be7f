-- count: how many live records there are, and the counters of the partition
-- KEYS: head
-- ARGV:
-- Returns: live, dead, rows, gen, v, fingerprint, 1 when no key is missing or else 0 | nothing for no partition
-- Cost: O(log N)
-- Include: records
local H = read_head(P)
if not H then return {} end
return { H.n - redis.call('ZCOUNT', P.e, '-inf', clock()), H.dead, H.next - 1, H.gen, H.v, H.fingerprint, whole(P, H) and 1 or 0 }
