-- top: the first records of the decay order
-- KEYS: head
-- ARGV: limit (at most 1,000), `1` to weigh by confidence, scale in seconds and exponent of a power law (0: none)
-- Returns: now, records in order
-- Cost: O(log N + limit); weighed, O(log N + the records within 22 % of the last one's relevance); by power law, newest
--   first until no older record can enter
-- Include: records
--
-- relevance x (.8 + .2 confidence) has the same order as z + ln(.8 + .2 confidence), and the second term is at most 0:
-- once z falls to the limit-th best sum, nothing below can enter. A power law has no static order: `d` is that of
-- touching, and with the highest base score there ever was (`peak`) the age alone bounds what is to come.
local H = read_head(P)
local now, limit, weigh = clock(), tonumber(ARGV[1]), ARGV[2] == '1'
local scale, exponent = tonumber(ARGV[3]), tonumber(ARGV[4])
if not H then return { now, {} } end
check_companions(P, H)

local function attributes(row)
  local _, confidence, _, base = struct.unpack('<I2I2I4f', redis.call('GETRANGE', P.a, row * 32, row * 32 + 11))
  return 0.8 + 0.2 * (confidence / 65535), base
end

local function fading(touched) return (1 + math.max(0, now / 1000 - touched) / scale) ^ -exponent end

-- What a row is ranked by, given its place in the static order
local function key_of(row, z)
  if exponent > 0 then
    local certainty, base = attributes(row)
    return math.max(0, base) * fading(z) * (weigh and certainty or 1)
  end
  if weigh and z > NEVER / 2 then return z + math.log((attributes(row))) end
  return z
end

-- What no row from this place on can exceed
local function bound_of(z)
  if exponent > 0 then return math.max(0, H.peak) * fading(z) end
  return z
end

local function before(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[3] < b[3]
end

local best, kept, floor, from, finished = {}, 0, -math.huge, 0, false
while not finished do
  local page = redis.call('ZREVRANGE', P.d, from, from + 255, 'WITHSCORES')
  for i = 1, #page, 2 do
    local z = tonumber(page[i + 1])
    if kept >= limit and bound_of(z) <= floor then finished = true break end
    if not expired(P, page[i], now) then
      kept = kept + 1
      best[kept] = { page[i], key_of(page[i], z), from + i }
      if kept >= 2 * limit or (kept == limit and floor == -math.huge) then
        table.sort(best, before)
        for j = kept, limit + 1, -1 do best[j] = nil end
        kept = limit
        floor = best[limit][2]
      end
    end
  end
  from = from + 256
  if #page < 512 then finished = true end
end

table.sort(best, before)
local rows = {}
for i = 1, math.min(limit, kept) do rows[i] = best[i][1] end
return { now, read_records(P, rows) }
