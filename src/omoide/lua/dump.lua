-- dump: the next live records in storage order, with all that is kept of them
-- KEYS: head
-- ARGV: row to start after, size (at most 128)
-- Returns: gen, now, next row of the partition, row to go on after (0 at the end), records, footprints, edges, rows and
--   ids of the neighbours that come before all of these, place of each record among versions (empty: none), v, live
--   records | nothing for no partition
-- Cost: O(size + edges), at most 64 edges a record; bodies as for page
-- Include: walk footprint chains
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local now = clock()
local rows, after = next_rows(H, tonumber(ARGV[1]), math.min(tonumber(ARGV[2]), 128), now)
local edges, named, names = hmget(P.g, rows), {}, {}
for i = 1, #rows do
  local data = edges[i] or ''
  for at = 1, #data - 7, 8 do
    local other = struct.unpack('<I4', data, at)
    if other < rows[1] and not named[other] and not expired(P, other, now) then
      local footprint = redis.call('HGET', P.f, other)
      if not footprint then error('CORRUPT a footprint is missing', 0) end
      named[other] = true
      names[#names + 1], names[#names + 2] = other, (id_of(footprint))
    end
  end
end
local footprints, versions = hmget(P.f, rows), {}
if redis.call('EXISTS', P.v) == 1 then
  for i = 1, #rows do
    local foot = footprints[i] and parts_of(footprints[i], 12 + string.byte(footprints[i], 11) * 10)
    local version = foot and foot.chain and version_of(P, rows[i], foot)
    versions[i] = version and version.member or ''
  end
end
return { H.gen, now, H.next, after, read_records(P, rows), footprints, edges, names, versions, H.v,
  H.n - redis.call('ZCOUNT', P.e, '-inf', now) }
