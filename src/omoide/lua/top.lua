-- top: the first records of the decay order
-- KEYS: head
-- ARGV: limit (at most 500), `1` to weigh by confidence, scale in seconds and exponent of a power law (0: none), instant
--   whose validity counts (`now` or ms; empty: none); to go on: what the limit-th best has so far (empty: not so many yet),
--   place (decay order, how many of that order before)
-- Returns: now, gen, rows of the best from that place on, in order, the records of the first 250 as far as 1 MiB of bodies
--   goes (one at least), place to go on from (decay order, how many of it; an empty order at the end)
-- Cost: O(log N + limit); weighed, O(log N + the records within 22 % of the last one's relevance); by power law, newest
--   first until no older record can enter; at most 2,048 rows looked at, those that are not valid among them, half of that
--   where each is weighed
-- Include: records
--
-- relevance x (.8 + .2 confidence) has the same order as z + ln(.8 + .2 confidence), and the second term is at most 0:
-- once z falls below the limit-th best sum, nothing below can enter. A power law has no static order: `d` is that of
-- touching, and with the highest base score there ever was (`peak`) the age alone bounds what is to come.
-- Ties go by decay order, then time, then row, the later first; `stores/redis/static.py` orders in the same way.
local H = read_head(P)
local now, limit, weigh = clock(), tonumber(ARGV[1]), ARGV[2] == '1'
local scale, exponent = tonumber(ARGV[3]), tonumber(ARGV[4])
local floor, place, passed = tonumber(ARGV[6] or '') or -math.huge, ARGV[7] or '', tonumber(ARGV[8] or 0)
mask(ARGV[5], now)
if not H then return { now, '', {}, {}, '', 0 } end
check_companions(P, H)
local PAGE, BUDGET = 256, (weigh or exponent > 0) and 1024 or 2048

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

local function time_of(entry)
  if not entry[4] then
    local first = entry[1] * 32 + 24
    entry[4] = struct.unpack('<i8', redis.call('GETRANGE', P.a, first, first + 7))
  end
  return entry[4]
end

local function before(a, b)
  for i = 2, 3 do
    if a[i] ~= b[i] then return a[i] > b[i] end
  end
  local x, y = time_of(a), time_of(b)
  if x ~= y then return x > y end
  return a[1] > b[1]
end

local best, kept = {}, 0
local function keep(row, z)
  local key = key_of(row, z)
  if key < floor or invalid(P, row) then return end
  kept = kept + 1
  best[kept] = { row, key, z }
  if kept >= 2 * limit or (kept == limit and floor == -math.huge) then
    table.sort(best, before)
    for i = kept, limit + 1, -1 do best[i] = nil end
    kept = limit
    floor = math.max(floor, best[limit][2])
  end
end

local first = place == '' and 0 or redis.call('ZCOUNT', P.d, '(' .. place, '+inf') + passed
local from, finished = first, false
while not finished and from - first < BUDGET do
  local page, members = redis.call('ZREVRANGE', P.d, from, from + PAGE - 1, 'WITHSCORES'), {}
  for i = 1, #page, 2 do members[#members + 1] = page[i] end
  local expiries = #members > 0 and has_expiry(P) and zmscore(P.e, members)
  for i = 1, #members do
    local z, at = tonumber(page[2 * i]), expiries and expiries[i]
    if bound_of(z) < floor then finished = true break end
    if not at or tonumber(at) > now then keep(tonumber(members[i]), z) end
    place = page[2 * i]
  end
  from = from + #members
  if #members < PAGE then finished = true end
end

table.sort(best, before)
local rows = {}
for i = 1, math.min(limit, kept) do rows[i] = best[i][1] end
local first_rows = first_of(rows, 250)
local records = read_records(P, first_of(first_rows, fitting(P, first_rows, BODIES)))
if finished then return { now, H.gen, rows, records, '', 0 } end
return { now, H.gen, rows, records, place, from - redis.call('ZCOUNT', P.d, '(' .. place, '+inf') }
