-- column: a piece of the attribute and interval columns
-- KEYS: head
-- ARGV: first row, last row; the plan of a `rank` beside it, where only its refusal makes this one wanted
-- Returns: gen, attributes, intervals | nothing where not wanted
-- Cost: 32 (56 with intervals) bytes a row, at most 32,768 rows
-- Include: partition budget
if ARGV[3] then
  local H = glance(P)
  if not H or in_vain(P, H, ARGV[3]) then return {} end
end
local first, last = tonumber(ARGV[1]), tonumber(ARGV[2])
local gen = redis.call('HGET', P.h, 'gen')
return { gen, redis.call('GETRANGE', P.a, first * 32, last * 32 + 31), redis.call('GETRANGE', P.w, first * 24, last * 24 + 23) }
