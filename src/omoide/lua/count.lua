-- count: how many live records there are, and the counters of the partition
-- KEYS: head
-- ARGV:
-- Returns: live, dead, rows, gen, v, fingerprint | nothing for no partition
-- Cost: O(log N)
-- Include: records
local H = read_head(P)
if not H then return {} end
check_companions(P, H)
return { H.n - redis.call('ZCOUNT', P.e, '-inf', clock()), H.dead, H.next - 1, H.gen, H.v, H.fingerprint }
