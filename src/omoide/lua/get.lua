-- get: records by id, or by a uniqueness digest
-- KEYS: head
-- ARGV: `id` or `unique`, then at most 500 ids or digests
-- Returns: now, fingerprint, row per id (0 where there is none), records of the rows that are there
-- Cost: O(ids)
-- Include: records
local H, now = glance(P), clock()
if H then check_companions(P, H) end
local found = H and redis.call('HMGET', ARGV[1] == 'unique' and P.q or P.m, unpack(ARGV, 2)) or {}
local places, rows = {}, {}
for i = 1, #ARGV - 1 do
  local row = found[i]
  places[i] = row and not expired(P, row, now) and tonumber(row) or 0
  if places[i] > 0 then rows[#rows + 1] = places[i] end
end
return { now, H and H.fingerprint or '', places, read_records(P, rows) }
