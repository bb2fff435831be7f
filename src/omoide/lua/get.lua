-- get: records by id, or by a uniqueness digest
-- KEYS: head
-- ARGV: `id` or `unique`, then at most 500 ids or digests
-- Returns: now, fingerprint, row per id (0 where there is none, -1 beyond 1 MiB of bodies: ask again, -2 where what is
--   stored is no row), records of the rows that are there
-- Cost: O(ids)
-- Include: records
local H, now = glance(P), clock()
if H then check_companions(P, H) end
local found = H and redis.call('HMGET', ARGV[1] == 'unique' and P.q or P.m, unpack(ARGV, 2)) or {}
local rows = {}
for i = 1, #found do
  local row = found[i] and tonumber(found[i])
  if row then rows[#rows + 1] = row end
end
rows = unexpired(P, rows, now)
local fit, standing = fitting(P, rows, BODIES), {}
for i = 1, #rows do standing[rows[i]] = i <= fit and rows[i] or standing[rows[i]] or -1 end
local places = {}
for i = 1, #ARGV - 1 do
  local row = found[i] and tonumber(found[i])
  places[i] = row and (standing[row] or 0) or found[i] and -2 or 0
end
return { now, H and H.fingerprint or '', places, read_records(P, first_of(rows, fit)) }
