-- postings: appending to the posting lists and nulling in place
-- Include: journal tails

-- Append one posting of `row` to the list of every term; a full tail is sealed first.
local function append_postings(Q, row, terms, codes)
  local tails, values = hmget(Q.t, terms), {}
  local base = row * 1024
  for i = 1, #terms do
    local posting, tail = pack('>I4', base + codes[i]), tails[i]
    if not tail then
      tail = posting
    else
      local start = unpack_bytes('>I4', tail) >= MARK and 13 or 1
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

-- Byte position of the posting of a row in `data`, from `start`: bisection, past nulls
local function find_posting(data, start, row)
  local low, high = 0, (#data - start + 1) / 4 - 1
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local place, x = middle, unpack_bytes('>I4', data, start + 4 * middle)
    while x == 0 and place < high do
      place = place + 1
      x = unpack_bytes('>I4', data, start + 4 * place)
    end
    local found = (x - x % 1024) / 1024
    if x == 0 or found > row then
      high = middle - 1
    elseif found < row then
      low = place + 1
    else
      return start + 4 * place
    end
  end
end

-- The sealed segment that holds a row: interpolation, then bisection over the segments' first rows.
local function find_segment(Q, term, sealed, last_sealed, row)
  local low, high = 0, math.floor((sealed - 1) / 16)
  local guess = math.min(high, math.floor(row / (last_sealed + 1) * (high + 1)))
  while low <= high do
    local name = segment_name(term, guess)
    local data = call('HGET', Q.s, name)
    if not data then error('CORRUPT a sealed segment is missing', 0) end
    local at = find_posting(data, 1, row)
    if at then return name, data, at end
    local first = first_row(data)
    if not first then break end
    if first > row then high = guess - 1 else low = guess + 1 end
    guess = math.floor((low + high) / 2)
  end
  for number = low, high do -- a segment of nulls gives no direction
    local name = segment_name(term, number)
    local data = call('HGET', Q.s, name)
    local at = data and find_posting(data, 1, row)
    if at then return name, data, at end
  end
  error('CORRUPT a posting is missing', 0)
end

local function with_null(data, at) return string.sub(data, 1, at - 1) .. '\0\0\0\0' .. string.sub(data, at + 4) end

-- Null the postings of a row in place, so that no position moves; a list left with nulls only goes.
local function null_postings(Q, row, terms)
  local tails, names, values, old, n = hmget(Q.t, terms), {}, {}, {}, 0
  for i = 1, #terms do
    local term, tail = terms[i], tails[i]
    if not tail then error('CORRUPT a posting list is missing', 0) end
    local sealed, nulls, last_sealed, start, live = parse_tail(tail)
    if live <= 1 then
      hdel(Q.t, term, tail)
      for number = 0, math.floor((sealed - 1) / 16) do hdel(Q.s, segment_name(term, number)) end
    else
      n = n + 1
      old[n] = tail
      if row > last_sealed then
        local at = find_posting(tail, start, row)
        if not at then error('CORRUPT a posting is missing', 0) end
        tail = with_null(tail, at)
      else
        local name, data, at = find_segment(Q, term, sealed, last_sealed, row)
        hset(Q.s, name, with_null(data, at), data)
      end
      if sealed > 0 then tail = string.sub(tail, 1, 4) .. pack('>I4', nulls + 1) .. string.sub(tail, 9) end
      names[n], values[n] = term, tail
    end
  end
  if n > 0 then hset_many(Q.t, names, values, old) end
end
