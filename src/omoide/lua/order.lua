-- order: a stretch of the decay order
-- KEYS: head
-- ARGV: first place, last place (at most 1,000 apart)
-- Returns: gen, rows, best first
-- Cost: O(log N + rows)
-- Include: partition
return { redis.call('HGET', P.h, 'gen') or '', redis.call('ZREVRANGE', P.d, ARGV[1], ARGV[2]) }
