-- order: a stretch of the decay order
-- KEYS: head
-- ARGV: where to begin (decay order, how many of that order before; an empty order at the start), rows (at most 1,000)
-- Returns: gen, now, highest base score there ever was as text, rows and their decay order in turn, best first
-- Cost: O(log N + rows)
-- Include: partition
local H = read_head(P)
if not H then return { '', clock(), '0', {} } end
local place, passed, size = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local from = place == '' and 0 or redis.call('ZCOUNT', P.d, '(' .. place, '+inf') + passed
return { H.gen, clock(), string.format('%.17g', H.peak),
  redis.call('ZREVRANGE', P.d, from, from + size - 1, 'WITHSCORES') }
