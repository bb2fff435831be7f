-- postings: appending to the posting lists and nulling in place
-- Include: journal tails

-- A list without its beginning; of any length, which the stack of a call is not
local function without_first(skipped, list)
  local rest = {}
  for i = skipped + 1, #list do rest[i - skipped] = list[i] end
  return rest
end

-- Append one posting of `row` to the list of every term, but for the first `skipped` of them; a full tail is sealed first.
local function append_postings(Q, row, terms, codes, skipped)
  if skipped and skipped > 0 then terms, codes = without_first(skipped, terms), without_first(skipped, codes) end
  local tails, values, made = hmget(Q.t, terms), {}, {} -- made: few codes are distinct
  local base = row * 1024
  for i = 1, #terms do
    local code, tail = codes[i], tails[i]
    local posting = made[code]
    if not posting then
      posting = pack('>I4', base + code)
      made[code] = posting
    end
    if not tail then
      tail = posting
    else
      local start = string.byte(tail) == 255 and 13 or 1
      if #tail - start + 1 < SEALED_BYTES then
        tail = tail .. posting
      else
        local sealed, nulls, last = parse_tail(tail)
        local name, data = segment_name(terms[i], math.floor(sealed / 16)), string.sub(tail, start)
        if sealed % 16 > 0 then
          local segment = call('HGET', Q.s, name)
          hset(Q.s, name, segment .. data, segment)
        else
          hset(Q.s, name, data, false)
        end
        tail = pack('>I4I4I4', MARK + sealed + 1, nulls, last_row(data, 1) or last) .. posting
      end
    end
    values[i] = tail
  end
  hset_many(Q.t, terms, values, tails)
end

-- The four ways in which the first three bytes of a posting of `row` can read: two bits of the code are among them
local function heads_of(row)
  local heads = {}
  for two = 0, 3 do heads[two + 1] = string.sub(pack('>I4', row * 1024 + two * 256), 1, 3) end
  return heads
end

-- Byte position, from `start`, of the posting that begins like one of these; for the few postings of a tail
local function place_in_tail(tail, start, heads)
  for i = 1, 4 do
    local at = string.find(tail, heads[i], start, true)
    while at and (at - start) % 4 > 0 do at = string.find(tail, heads[i], at + 1, true) end
    if at then return at end
  end
  error('CORRUPT a posting is missing', 0)
end

-- Byte position of the posting of a row in `data`, a sealed segment: bisection, past nulls
local function find_posting(data, row)
  local low, high = 0, #data / 4 - 1
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local place, x = middle, unpack_bytes('>I4', data, 1 + 4 * middle)
    while x == 0 and place < high do
      place = place + 1
      x = unpack_bytes('>I4', data, 1 + 4 * place)
    end
    local found = (x - x % 1024) / 1024
    if x == 0 or found > row then
      high = middle - 1
    elseif found < row then
      low = place + 1
    else
      return 1 + 4 * place
    end
  end
end

-- The sealed segment that holds a row: from a guess, whose data does not, by bisection over the segments' first rows.
local function find_segment(Q, term, sealed, guess, data, row)
  local low, high = 0, math.floor((sealed - 1) / 16)
  while true do
    if not data then error('CORRUPT a sealed segment is missing', 0) end
    local first = first_row(data)
    if not first then break end
    if first > row then high = guess - 1 else low = guess + 1 end
    if low > high then break end
    guess = math.floor((low + high) / 2)
    local name = segment_name(term, guess)
    data = call('HGET', Q.s, name)
    local at = data and find_posting(data, row)
    if at then return name, data, at end
  end
  for number = low, high do -- a segment of nulls gives no direction
    local name = segment_name(term, number)
    local data = call('HGET', Q.s, name)
    local at = data and find_posting(data, row)
    if at then return name, data, at end
  end
  error('CORRUPT a posting is missing', 0)
end

local function with_null(data, at) return string.sub(data, 1, at - 1) .. '\0\0\0\0' .. string.sub(data, at + 4) end

-- Null the postings of a row in sealed segments: those where it should be are read together.
local function null_sealed(Q, row, lists)
  local names, values, guesses = {}, {}, {}
  for i = 1, #lists do
    local last = math.floor((lists[i].sealed - 1) / 16)
    guesses[i] = math.min(last, math.floor(row / (lists[i].last + 1) * (last + 1)))
    names[i] = segment_name(lists[i].term, guesses[i])
  end
  local old = hmget(Q.s, names)
  for i = 1, #lists do
    local at = old[i] and find_posting(old[i], row)
    if not at then names[i], old[i], at = find_segment(Q, lists[i].term, lists[i].sealed, guesses[i], old[i], row) end
    values[i] = with_null(old[i], at)
  end
  if #names > 0 then hset_many(Q.s, names, values, old) end
end

-- Null the postings of a row in place, so that no position moves; a list left with nulls only goes.
local function null_postings(Q, row, terms)
  local tails, heads = hmget(Q.t, terms), heads_of(row)
  local names, values, old, n, emptied, were, m, lists = {}, {}, {}, 0, {}, {}, 0, {}
  for i = 1, #terms do
    local term, tail, changed = terms[i], tails[i], nil
    if not tail then error('CORRUPT a posting list is missing', 0) end
    if string.byte(tail) < 255 then
      changed = with_null(tail, place_in_tail(tail, 1, heads))
      if not string.find(changed, '[^%z]') then changed = nil end
    else
      local sealed, nulls, last_sealed, start, live = parse_tail(tail)
      if live <= 1 then
        for number = 0, math.floor((sealed - 1) / 16) do hdel(Q.s, segment_name(term, number)) end
      else
        changed = string.sub(tail, 1, 4) .. pack('>I4', nulls + 1) .. string.sub(tail, 9)
        if row > last_sealed then
          changed = with_null(changed, place_in_tail(changed, start, heads))
        else
          lists[#lists + 1] = { term = term, sealed = sealed, last = last_sealed }
        end
      end
    end
    if changed then
      n = n + 1
      names[n], values[n], old[n] = term, changed, tail
    else
      m = m + 1
      emptied[m], were[m] = term, tail
    end
  end
  null_sealed(Q, row, lists)
  hdel_many(Q.t, emptied, were)
  if n > 0 then hset_many(Q.t, names, values, old) end
end
