-- slots: a piece of the vectors of a partition
-- KEYS: head
-- ARGV: stride, first row, last row
-- Returns: gen, slots
-- Cost: `stride` bytes a row, at most 1 MiB
-- Include: partition
local stride, first, last = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
return { redis.call('HGET', P.h, 'gen'), redis.call('GETRANGE', P.z, first * stride, (last + 1) * stride - 1) }
