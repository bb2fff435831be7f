-- top: the first records of the decay order
-- KEYS: head
-- ARGV: limit (at most 1,000), `1` to weigh by confidence
-- Returns: now, records in order
-- Cost: O(log N + limit); weighed, O(log N + the records within 22 % of the last one's relevance)
-- Include: records
--
-- relevance x (.8 + .2 confidence) has the same order as z + ln(.8 + .2 confidence), and the second
-- term is at most 0: once z falls to the limit-th best sum, nothing below can enter.
local H = glance(P)
local now, limit, weigh = clock(), tonumber(ARGV[1]), ARGV[2] == '1'
if not H then return { now, {} } end
check_companions(P, H)

local best, kept, floor = {}, 0, -math.huge

local function offer(row, z, index)
  local key = z
  if weigh and z > NEVER / 2 then
    local _, confidence = struct.unpack('<I2I2', redis.call('GETRANGE', P.a, row * 32, row * 32 + 3))
    key = z + math.log(0.8 + 0.2 * (confidence / 65535))
  end
  kept = kept + 1
  best[kept] = { row, key, index }
  if kept >= 2 * limit or (kept >= limit and floor == -math.huge) then
    table.sort(best, function(a, b)
      if a[2] ~= b[2] then return a[2] > b[2] end
      return a[3] < b[3]
    end)
    for i = kept, limit + 1, -1 do best[i] = nil end
    kept = math.min(kept, limit)
    floor = best[limit][2]
  end
end

local from, finished = 0, false
while not finished do
  local page = redis.call('ZREVRANGE', P.d, from, from + 255, 'WITHSCORES')
  for i = 1, #page, 2 do
    local z = tonumber(page[i + 1])
    if kept >= limit and z <= floor then finished = true break end
    if not expired(P, page[i], now) then offer(page[i], z, from + i) end
  end
  from = from + 256
  if #page < 512 then finished = true end
end

table.sort(best, function(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[3] < b[3]
end)
local rows = {}
for i = 1, math.min(limit, kept) do rows[i] = best[i][1] end
return { now, read_records(P, rows) }
