-- rank: the server reader: score, filter and return the best records in one call
-- KEYS: head
-- ARGV: plan (MessagePack map: terms, weights, k1, b, pivot (0: live average), limit, must (terms that have to hold),
--   exclude ids, valid (`now` or ms: as of when; none where validity does not count), time, importance, confidence (half-open ranges, lists of low and high, rounded as stored), budget, looks,
--   session (field, or none), borrow (postings up to which neighbours count), strict, names (terms of names), dates
--   (lists of year, month, day, 0 for none), cues (bits of the flags), ranking (map of near, far, answer, gate, asking,
--   author, date, cue, importance, confidence, graph))
-- Returns: now, live, matched, list of score, text per hit, records, fingerprint, skipped arms, terms nobody has, gen, next
--   | `too_many`, postings | nothing for no partition
-- Cost: O(postings of the terms), at most `budget`; at most `looks` attribute rows; with dates O(rows), at most `looks`; with
--   neighbours O(records of the sessions touched), at most 8 x `looks`
-- Include: records sessions dates budget
--
-- The arithmetic is that of core/bm25.py and core/arms/formula.py, operation by operation. With `strict` an arm that
-- would cost too much gives `too_many`; without, it is skipped and named.
local plan = cmsgpack.unpack(ARGV[1])
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local floor, unpack_bytes, max = math.floor, struct.unpack, math.max
local W, now = plan.ranking, clock()
mask(plan.valid, now)
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

local work = work_of(P, H, plan)
local tails, unknown, skipped, borrowing, dated = work.tails, work.unknown, work.skipped, work.borrowing, work.dated
local function too_many() return { 'too_many', work.postings } end
if work.refused then return too_many() end

local allowed = rows_with(P, plan.must)
local text = {} -- row -> sum

-- Add what each code is worth to the sum of its row; a null has row 0. The calls of a loop cost more than what is in it,
-- so it takes six postings a turn.
local function add_to(sums, data, worth)
  local whole = #data - #data % 24
  for at = 1, whole, 24 do
    local a, b, c, d, e, f = unpack_bytes('>I4I4I4I4I4I4', data, at)
    local k, l, m, n, o, p = a % 1024, b % 1024, c % 1024, d % 1024, e % 1024, f % 1024
    a, b, c, d, e, f = (a - k) / 1024, (b - l) / 1024, (c - m) / 1024, (d - n) / 1024, (e - o) / 1024, (f - p) / 1024
    sums[a] = (sums[a] or 0) + worth[k]
    sums[b] = (sums[b] or 0) + worth[l]
    sums[c] = (sums[c] or 0) + worth[m]
    sums[d] = (sums[d] or 0) + worth[n]
    sums[e] = (sums[e] or 0) + worth[o]
    sums[f] = (sums[f] or 0) + worth[p]
  end
  for at = whole + 1, #data, 4 do
    local x = unpack_bytes('>I4', data, at)
    local code = x % 1024
    local row = (x - code) / 1024
    sums[row] = (sums[row] or 0) + worth[code]
  end
end

-- Sums without nulls, and without rows whose record is gone
local function cleared(sums)
  sums[0] = nil
  for row in pairs(gone) do sums[row] = nil end
  return sums
end

-- Own weights of a term, added up at once where nothing is lent
local idfs, own = {}, {} -- own: per term row -> weight, only when neighbours borrow
for i = 1, #plan.terms do
  if tails[i] then
    local df = live_in(plan.terms[i], tails[i])
    local idf = round20(plan.weights[i] * math.log((H.n - df + 0.5) / (df + 0.5) + 1))
    local data = postings_since(P, plan.terms[i], tails[i], 0)
    if borrowing then
      local weights = {}
      add_to(weights, data, table_)
      idfs[#idfs + 1], own[#own + 1] = idf, cleared(weights)
    else
      local products = setmetatable({}, {
        __index = function(self, code)
          self[code] = idf * table_[code]
          return self[code]
        end,
      })
      add_to(text, data, products)
    end
  end
end
cleared(text)
for row in pairs(allowed and text or {}) do
  if not allowed[row] then text[row] = nil end
end

-- What neighbours lend: per term the greatest of own and lent, then the sum
local function borrow()
  local matched = {}
  for i = 1, #own do
    for row in pairs(own[i]) do matched[row] = true end
  end
  local links = links_of(matched, plan.session, now, 8 * plan.looks)
  if not links then
    if plan.strict then return false end
    skipped[#skipped + 1], links = 'neighbours', {}
  end
  local function share(reach, length) return round20(reach * (length <= W.gate and 1 or W.gate / length)) end
  local reaches = { W.near, W.near, W.far, W.far }
  local reaches_of_question = { W.near, W.answer, W.far, W.far }
  for i = 1, #own do
    local used = {}
    for row, weight in pairs(own[i]) do
      used[row] = max(used[row] or 0, weight)
      local around = links[row] or {}
      local block, first = around[5], around[6]
      local asks = links[row] and floor(attributes[row][1] / 16) % 2 == 1
      if asks and around[2] then
        local author = attributes[row][6]
        asks = author == 0 or author_in(block, first, around[2]) ~= author
      end
      local reach = asks and reaches_of_question or reaches
      for at = 1, 4 do
        local other = around[at]
        if other then
          local lent = round20(share(reach[at], length_in(block, first, other)) * weight)
          used[other] = max(used[other] or 0, lent)
        end
      end
    end
    for row, weight in pairs(used) do
      if not allowed or allowed[row] then text[row] = (text[row] or 0) + idfs[i] * weight end
    end
  end
  return true
end
if borrowing and not borrow() then return too_many() end

-- The ordinal of the one author whom the names belong to, when there is another author
local function author_named()
  local named
  for _, name in ipairs(plan.names) do
    for row in pairs(rows_with(P, { name })) do
      local author = attributes[row][6]
      if author > 0 and named and author ~= named then return 0 end
      if author > 0 then named = author end
    end
  end
  if not named then return 0 end
  for first = 1, H.next - 1, 1024 do
    local column = redis.call('GETRANGE', P.a, first * 32, (first + 1023) * 32 + 31)
    for at = 1, #column, 32 do
      local flags, _, _, _, _, author = unpack_bytes('<I2I2I4fI4I4', column, at)
      if author > 0 and author ~= named and flags % 2 == 0 then return named end
    end
  end
  return 0
end
local author = W.author ~= 1 and #plan.names > 0 and author_named() or 0

local function within(range, value)
  return not range or ((not range[1] or value >= range[1]) and (not range[2] or value < range[2]))
end

local looks = 0
-- Whether a row is visible and passes the filters
local passing = setmetatable({}, {
  __index = function(self, row)
    looks = looks + 1
    local held = attributes[row]
    local ok = held[1] % 2 == 0 and (not allowed or allowed[row] or false) and within(plan.time or nil, held[8])
      and within(plan.importance or nil, held[4]) and within(plan.confidence or nil, held[2] / 65535)
      and not expired(P, row, now) and not invalid(P, row)
    self[row] = ok
    return ok
  end,
})

local best_text, fit = 0, nil
if dated then
  fit = fits_of(plan.dates)
  for row, sum in pairs(text) do
    if sum > best_text and passing[row] then best_text = sum end
  end
  for row = 1, H.next - 1 do
    if not text[row] and attributes[row][1] % 2 == 0 and fit(attributes[row][8]) > 0 then text[row] = 0 end
  end
end
local left_out = {} -- they count as seeds of the graph
for i = 1, #plan.exclude do
  local row = redis.call('HGET', P.m, plan.exclude[i])
  if row then left_out[tonumber(row)] = true end
end
local keep = max(plan.limit + #plan.exclude, W.graph > 0 and 3 or 1)

local bonus = W.date * best_text
local function final(row, sum)
  local held = attributes[row]
  local total = sum
  if author > 0 and held[6] == author then total = total * W.author end
  if fit then total = total + bonus * fit(held[8]) end
  for i = 1, #plan.cues do
    if floor(held[1] / plan.cues[i]) % 2 == 1 then
      total = total * W.cue
      break
    end
  end
  if floor(held[1] / 32) % 2 == 1 then total = total * W.asking end
  local importance = max(0, math.min(held[4], 1))
  return total * ((1 - W.importance) + W.importance * importance) * ((1 - W.confidence) + W.confidence * (held[2] / 65535))
end

-- At least the score that a sum can come to
local function bound(sum)
  if author > 0 then sum = sum * W.author end
  if fit then sum = sum + bonus end
  return (#plan.cues > 0 and sum * W.cue or sum) * (1 + 1e-12)
end

-- `keep` scores give a bar, and only what its bound lifts over the bar needs a look. The first looks go to the
-- `keep` best sums.
local judged, best, found, bar, trim_at = {}, {}, 0, -1, keep

local function look(row, sum)
  judged[row] = true
  local score = passing[row] and final(row, sum)
  if not score or score <= 0 or score < bar then return end
  found = found + 1
  best[found] = { score, attributes[row][8], row }
  if found >= trim_at then
    table.sort(best, function(a, b) return a[1] > b[1] end)
    bar = best[keep][1]
    while best[found][1] < bar do
      best[found] = nil
      found = found - 1
    end
    trim_at = 2 * max(found, keep)
  end
end

local leaders, held, matched = {}, 0, 0 -- the best sums, ascending
for row, sum in pairs(text) do
  matched = matched + 1
  if held < keep or sum > text[leaders[1]] then
    local at = 1
    if held < keep then
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
  if not judged[row] and bound(sum) >= bar then
    if looks >= plan.looks then return too_many() end
    look(row, sum)
  end
end

local function in_order(a, b)
  if a[1] ~= b[1] then return a[1] > b[1] end
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[3] ~= b[3] and bytes_less(ids[a[3]], ids[b[3]])
end
table.sort(best, in_order)

-- What the first three lend by their edges, see core/linking.py: row -> the most
local function lent_by_seeds()
  local lent, seeds = {}, math.min(3, found)
  while best[seeds + 1] and best[seeds + 1][1] == best[seeds][1] and best[seeds + 1][2] == best[seeds][2] do
    seeds = seeds + 1
  end
  for i = 1, seeds <= 8 and seeds or 0 do
    local data = redis.call('HGET', P.g, best[i][3]) or ''
    for at = 1, math.min(#data - 7, 128), 8 do
      local other, weight = unpack_bytes('<I4f', data, at)
      if weight > 0.5 then
        lent[other] = max(lent[other] or 0, W.graph * ((weight - 0.5) / (weight + 0.5)) * best[i][1])
      end
    end
  end
  return lent
end

local function follow_links()
  local lent, at = lent_by_seeds(), {}
  if not next(lent) then return end
  for i = 1, found do at[best[i][3]] = best[i] end
  for other, value in pairs(lent) do
    if at[other] then
      at[other][1] = at[other][1] + value
    elseif passing[other] then
      text[other], found = text[other] or 0, found + 1
      best[found] = { final(other, text[other]) + value, attributes[other][8], other }
    end
  end
  table.sort(best, in_order)
end
if W.graph > 0 and found > 0 then follow_links() end

local scores, winners, n = {}, {}, 0
for i = 1, found do
  local row = best[i][3]
  if n < plan.limit and not left_out[row] then
    n = n + 1
    scores[2 * n - 1], scores[2 * n] = string.format('%.17g', best[i][1]), string.format('%.17g', text[row])
    winners[n] = row
  end
end
return { now, H.n, matched, scores, read_records(P, winners), H.fingerprint, skipped, unknown, H.gen, H.next }
