-- rank: the server reader: score, filter and return the best records in one call
-- KEYS: head
-- ARGV: plan (MessagePack map: terms, weights, k1, b, pivot (0: live average), limit, must (terms that have to hold),
--   exclude ids, time, importance, confidence (half-open ranges, lists of low and high), budget, looks)
-- Returns: now, live, matched, list of score, text per hit, records, fingerprint | `too_many`, postings | nothing for no partition
-- Cost: O(postings of the terms), at most `budget`; at most `looks` attribute rows
-- Include: records
--
-- The arithmetic is that of core/bm25.py, operation by operation: idf and weight are rounded to
-- multiples of 2^-20, so that a sum of them is exact in any order.
local plan = cmsgpack.unpack(ARGV[1])
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local floor, unpack_bytes = math.floor, struct.unpack
local function round20(x) return floor(x * 1048576 + 0.5) / 1048576 end

local TF_LEVELS = { 1, 2, 3, 4, 5, 6, 8, 12 }
local pivot = plan.pivot
if pivot == 0 then pivot = H.n > 0 and H.sdl / H.n or 1 end

local table_ = setmetatable({}, {
  __index = function(self, code)
    local level = code % 128
    local tf, length = TF_LEVELS[(code - level) / 128 + 1], level + 1
    if level >= 64 then length = floor(64 * 1.067 ^ (level - 63) + 0.5) end
    if plan.pivot > 0 and length < pivot then length = pivot end
    local weight = round20((plan.k1 + 1) * tf / (tf + plan.k1 * (1 - plan.b + plan.b * (length / pivot))))
    self[code] = weight
    return weight
  end,
})

local tails, postings = hmget(P.t, plan.terms), 0
for i = 1, #plan.terms do
  if tails[i] then
    local _, _, _, _, live = parse_tail(tails[i])
    postings = postings + live
  end
end
for _, tail in ipairs(hmget(P.t, plan.must)) do
  if tail then
    local _, _, _, _, live = parse_tail(tail)
    postings = postings + live
  end
end
if postings > plan.budget then return { 'too_many', postings } end

local allowed = rows_with(P, plan.must)
local text = {} -- row -> sum

local function add(data, idf)
  local products = setmetatable({}, {
    __index = function(self, code)
      self[code] = idf * table_[code]
      return self[code]
    end,
  })
  local function one(x)
    if x > 0 then
      local code = x % 1024
      local row = (x - code) / 1024
      if not allowed or allowed[row] then text[row] = (text[row] or 0) + products[code] end
    end
  end
  local eights = #data - #data % 32
  for at = 1, eights, 32 do
    local a, b, c, d, e, f, g, h = unpack_bytes('>I4I4I4I4I4I4I4I4', data, at)
    one(a) one(b) one(c) one(d) one(e) one(f) one(g) one(h)
  end
  for at = eights + 1, #data, 4 do one((unpack_bytes('>I4', data, at))) end
end

for i = 1, #plan.terms do
  if tails[i] then
    local _, _, _, _, df = parse_tail(tails[i])
    local idf = round20(plan.weights[i] * math.log((H.n - df + 0.5) / (df + 0.5) + 1))
    add(postings_since(P, plan.terms[i], tails[i], 0), idf)
  end
end

local now = clock()
for i = 1, #plan.exclude do
  local row = redis.call('HGET', P.m, plan.exclude[i])
  if row then text[tonumber(row)] = nil end
end

local function within(range, value)
  return not range or ((not range[1] or value >= range[1]) and (not range[2] or value < range[2]))
end
local time_range, importance_range, confidence_range = plan.time or nil, plan.importance or nil, plan.confidence or nil

-- Final score and time of a row, or nil when a filter or its expiry hides it
local function judge(row, sum)
  local _, confidence, _, importance, _, _, _, time =
    unpack_bytes('<I2I2I4fI4I4I4i8', redis.call('GETRANGE', P.a, row * 32, row * 32 + 31))
  local share = confidence / 65535
  if not (within(time_range, time) and within(importance_range, importance) and within(confidence_range, share)) then return nil end
  if expired(P, row, now) then return nil end
  if importance < 0 then importance = 0 elseif importance > 1 then importance = 1 end
  return sum * (0.85 + 0.15 * importance) * (0.8 + 0.2 * share), time
end

-- The multiplier is at most 1: `limit` final scores give a bar, and only a text score at or above it
-- needs a look. The first look goes to the `limit` best text scores.
local judged, best, found, bar, trim_at = {}, {}, 0, -1, plan.limit
local looks = 0

local function look(row, sum)
  judged[row], looks = true, looks + 1
  local score, time = judge(row, sum)
  if not score or score < bar then return end
  found = found + 1
  best[found] = { score, time, row }
  if found >= trim_at then
    table.sort(best, function(a, b) return a[1] > b[1] end)
    bar = best[plan.limit][1]
    while best[found][1] < bar do
      best[found] = nil
      found = found - 1
    end
    trim_at = 2 * math.max(found, plan.limit)
  end
end

local leaders, held, matched = {}, 0, 0 -- the best text scores, ascending
for row, sum in pairs(text) do
  matched = matched + 1
  if held < plan.limit or sum > text[leaders[1]] then
    local at = 1
    if held < plan.limit then
      held = held + 1
      table.insert(leaders, 1, row)
    else
      leaders[1] = row
    end
    while at < held and text[leaders[at + 1]] < sum do
      leaders[at] = leaders[at + 1]
      at = at + 1
    end
    leaders[at] = row
  end
end
for i = held, 1, -1 do look(leaders[i], text[leaders[i]]) end
for row, sum in pairs(text) do
  if sum >= bar and not judged[row] then
    if looks >= plan.looks then return { 'too_many', postings } end
    look(row, sum)
  end
end

local ids = setmetatable({}, {
  __index = function(self, row)
    self[row] = cmsgpack.unpack(string.sub(redis.call('HGET', P.f, row), 19))[1]
    return self[row]
  end,
})
table.sort(best, function(a, b)
  if a[1] ~= b[1] then return a[1] > b[1] end
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[3] ~= b[3] and ids[a[3]] < ids[b[3]]
end)
local scores, winners = {}, {}
for i = 1, math.min(plan.limit, found) do
  scores[2 * i - 1], scores[2 * i] = string.format('%.17g', best[i][1]), string.format('%.17g', text[best[i][3]])
  winners[i] = best[i][3]
end
return { now, H.n, matched, scores, read_records(P, winners), H.fingerprint }
