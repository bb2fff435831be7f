-- get: records by id, or by a uniqueness digest
-- KEYS: head
-- ARGV: `id` or `unique`, then at most 500 ids or digests
-- Returns: now, fingerprint, then a list per id: row, body, attributes, statistics, decay order, expiry | empty where there is none
-- Cost: O(ids)
-- Include: records
local H = glance(P)
local out = { clock(), H and H.fingerprint or '' }
if H then check_companions(P, H) end
local rows = H and redis.call('HMGET', ARGV[1] == 'unique' and P.q or P.m, unpack(ARGV, 2)) or {}
for i = 2, #ARGV do
  local row = rows[i - 1]
  out[i + 1] = row and not expired(P, row, out[1]) and read_records(P, { row }) or {}
end
return out
