-- graph: the edges of a record, 8 bytes each in field `row` of `g`: u32 row, f32 weight, little endian
-- Include: journal
local MAX_EDGES, MAX_NAMED = 64, 16

-- Rows, weights, how many, the bytes they came from (false for none); bytes short of an edge are dropped.
local function edges_of(Q, row)
  local data, rows, weights, n = call('HGET', Q.g, row), {}, {}, 0
  if data then
    for at = 1, #data - 7, 8 do
      n = n + 1
      rows[n], weights[n] = unpack_bytes('<I4f', data, at)
    end
  end
  return rows, weights, n, data
end

-- Edges go back strongest first (ties by row), so that the weakest is the one a full list drops: places -> order of them
local function by_strength(rows, weights)
  local order = {}
  for i = 1, #rows do order[i] = i end
  table.sort(order, function(a, b)
    if weights[a] ~= weights[b] then return weights[a] > weights[b] end
    return rows[a] < rows[b]
  end)
  return order
end

local function put_edges(Q, row, parts, old)
  if #parts == 0 then hdel(Q.g, row, old) else hset(Q.g, row, table.concat(parts), old) end
end

-- Returns the rows that found no room. `old`: the bytes there, nil to look.
local function store_edges(Q, row, rows, weights, old)
  local parts, dropped = {}, {}
  for rank, i in ipairs(by_strength(rows, weights)) do
    if rank <= MAX_EDGES then parts[rank] = pack('<I4f', rows[i], weights[i]) else dropped[#dropped + 1] = rows[i] end
  end
  put_edges(Q, row, parts, old)
  return dropped
end

-- Cut it out where it stands: what is left is in order.
local function drop_half_edge(Q, row, other)
  local data = call('HGET', Q.g, row)
  local name, at = pack('<I4', other), 1
  while data do
    at = string.find(data, name, at, true)
    if not at then return end
    if at % 8 == 1 then
      put_edges(Q, row, #data > 8 and { string.sub(data, 1, at - 1), string.sub(data, at + 8) } or {}, data)
      return
    end
    at = at + 1
  end
end

local function add_half_edge(Q, row, other, delta)
  local rows, weights, n, old = edges_of(Q, row)
  local weight = delta
  for i = 1, n do
    if rows[i] == other then
      weight = weights[i] + delta
      table.remove(rows, i)
      table.remove(weights, i)
      break
    end
  end
  if weight > 0 then
    rows[#rows + 1], weights[#weights + 1] = other, weight
  else
    weight = 0
  end
  for _, gone in ipairs(store_edges(Q, row, rows, weights, old)) do
    drop_half_edge(Q, gone, row)
    if gone == other then weight = 0 end
  end
  return weight
end

local function add_edge(Q, first, second, delta)
  if first == second then return 0 end
  local weight = add_half_edge(Q, first, second, delta)
  if weight == 0 and delta > 0 then return 0 end
  return math.min(weight, add_half_edge(Q, second, first, delta))
end

-- The edges of a set of rows in hand: row -> { held = other -> weight, old = bytes there }; the rows, each once
local function lists_of(Q, linked)
  local lists, names = {}, {}
  for _, row in ipairs(linked) do
    if not lists[row] then
      local rows, weights, n, old = edges_of(Q, row)
      local held = {}
      for i = 1, n do held[rows[i]] = weights[i] end
      lists[row], names[#names + 1] = { held = held, old = old }, row
    end
  end
  return lists, names
end

local function in_order(held)
  local rows, weights = {}, {}
  for other in pairs(held) do rows[#rows + 1] = other end
  table.sort(rows)
  for i = 1, #rows do weights[i] = held[rows[i]] end
  return rows, weights, by_strength(rows, weights)
end

-- What finds no room in the list of a row leaves the list of the other too.
local function cut(Q, lists, row)
  local rows, _, order = in_order(lists[row].held)
  for rank = MAX_EDGES + 1, #rows do
    local other = rows[order[rank]]
    lists[row].held[other] = nil
    if lists[other] then lists[other].held[row] = nil else drop_half_edge(Q, other, row) end
  end
end

-- Add `delta` (above 0) to the edge between every two of these rows; each list is read and written once.
local function link_all(Q, linked, delta)
  local lists, names = lists_of(Q, linked)
  for _, row in ipairs(names) do
    local held = lists[row].held
    for _, other in ipairs(names) do
      if other ~= row then held[other] = (held[other] or 0) + delta end
    end
  end
  for _, row in ipairs(names) do cut(Q, lists, row) end
  for _, row in ipairs(names) do
    local rows, weights, order = in_order(lists[row].held)
    local parts = {}
    for rank, i in ipairs(order) do parts[rank] = pack('<I4f', rows[i], weights[i]) end
    put_edges(Q, row, parts, lists[row].old)
  end
end

-- Give a new row edges to those of these records (id, weight) that are there.
local function join(Q, row, edges)
  local rows, weights, n, old = edges_of(Q, row)
  for i = 1, #edges do
    local other = tonumber(call('HGET', Q.m, edges[i][1]) or row)
    local weight = other ~= row and add_half_edge(Q, other, row, edges[i][2]) or 0
    if weight > 0 then
      n = n + 1
      rows[n], weights[n] = other, weight
    end
  end
  for _, gone in ipairs(store_edges(Q, row, rows, weights, old)) do drop_half_edge(Q, gone, row) end
end

local function drop_edges(Q, row)
  local rows, _, _, old = edges_of(Q, row)
  for i = 1, #rows do drop_half_edge(Q, rows[i], row) end
  hdel(Q.g, row, old)
end

-- An updated record has a new row: its edges follow it. Where a name in common has given the new row
-- an edge already, the stronger of the two stays; the edge between the two rows goes with the old one.
local function move_edges(Q, old, new)
  local rows, weights, n = edges_of(Q, old)
  if n == 0 then return end
  hdel(Q.g, old)
  drop_half_edge(Q, new, old)
  local mine, mine_weights, m = edges_of(Q, new)
  local held = {}
  for i = 1, m do held[mine[i]] = i end
  for i = 1, n do
    local other, at = rows[i], held[rows[i]]
    if other ~= new then
      if not at then
        m, at = m + 1, m + 1
        mine[m], mine_weights[m] = other, 0
      end
      mine_weights[at] = math.max(mine_weights[at], weights[i])
      drop_half_edge(Q, other, new)
      local theirs, theirs_weights = edges_of(Q, other)
      for j = 1, #theirs do
        if theirs[j] == old then theirs[j], theirs_weights[j] = new, mine_weights[at] end
      end
      store_edges(Q, other, theirs, theirs_weights)
    end
  end
  for _, gone in ipairs(store_edges(Q, new, mine, mine_weights)) do drop_half_edge(Q, gone, new) end
end

-- Field `e:<name>`: the latest rows that name an entity, u32 each. However many names a new row has in common with
-- another, they make one edge of 0.5: the graph tells use together from names by what is above that.
local function name_entities(Q, row, names, link)
  local met = {}
  for i = 1, #names do
    local field = 'e:' .. names[i]
    local data = call('HGET', Q.g, field) or ''
    for at = 1, link and #data or 0, 4 do
      local other = unpack_bytes('<I4', data, at)
      if not met[other] then
        met[other] = true
        add_edge(Q, row, other, 0.5)
      end
    end
    hset(Q.g, field, string.sub(data .. pack('<I4', row), -4 * MAX_NAMED))
  end
end

local function forget_entity(Q, row, name)
  local field = 'e:' .. name
  local data, kept = call('HGET', Q.g, field), {}
  if not data then return end
  for at = 1, #data, 4 do
    if unpack_bytes('<I4', data, at) ~= row then kept[#kept + 1] = string.sub(data, at, at + 3) end
  end
  if #kept == 0 then hdel(Q.g, field) else hset(Q.g, field, table.concat(kept)) end
end
