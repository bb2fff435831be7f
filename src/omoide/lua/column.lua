-- column: a piece of the attribute and interval columns
-- KEYS: head
-- ARGV: first row, last row
-- Returns: gen, attributes, intervals
-- Cost: 32 (56 with intervals) bytes a row, at most 32,768 rows
-- Include: partition
local first, last = tonumber(ARGV[1]), tonumber(ARGV[2])
local gen = redis.call('HGET', P.h, 'gen')
return { gen, redis.call('GETRANGE', P.a, first * 32, last * 32 + 31), redis.call('GETRANGE', P.w, first * 24, last * 24 + 23) }
