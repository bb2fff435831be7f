-- graph: the edges of a record, 8 bytes each in field `row` of `g`: u32 row, f32 weight, little endian
-- Include: journal
local MAX_EDGES, MAX_NAMED = 64, 16

local function edges_of(Q, row)
  local data, rows, weights, n = call('HGET', Q.g, row), {}, {}, 0
  if data then
    for at = 1, #data, 8 do
      n = n + 1
      rows[n], weights[n] = unpack_bytes('<I4f', data, at)
    end
  end
  return rows, weights, n
end

-- Edges go back strongest first (ties by row), so that the weakest is the one a full list drops.
local function store_edges(Q, row, rows, weights)
  local order, parts = {}, {}
  for i = 1, #rows do order[i] = i end
  table.sort(order, function(a, b)
    if weights[a] ~= weights[b] then return weights[a] > weights[b] end
    return rows[a] < rows[b]
  end)
  local dropped = {}
  for rank, i in ipairs(order) do
    if rank <= MAX_EDGES then parts[rank] = pack('<I4f', rows[i], weights[i]) else dropped[#dropped + 1] = rows[i] end
  end
  if #parts == 0 then hdel(Q.g, row) else hset(Q.g, row, table.concat(parts)) end
  return dropped
end

local function drop_half_edge(Q, row, other)
  local rows, weights, n = edges_of(Q, row)
  for i = 1, n do
    if rows[i] == other then
      table.remove(rows, i)
      table.remove(weights, i)
      store_edges(Q, row, rows, weights)
      return
    end
  end
end

local function add_half_edge(Q, row, other, delta)
  local rows, weights, n = edges_of(Q, row)
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
  for _, gone in ipairs(store_edges(Q, row, rows, weights)) do
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

local function drop_edges(Q, row)
  local rows = edges_of(Q, row)
  for i = 1, #rows do drop_half_edge(Q, rows[i], row) end
  hdel(Q.g, row)
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

-- Field `e:<name>`: the latest rows that name an entity, u32 each
local function name_entity(Q, row, name, link)
  local field = 'e:' .. name
  local data = call('HGET', Q.g, field) or ''
  for at = 1, link and #data or 0, 4 do add_edge(Q, row, unpack_bytes('<I4', data, at), 0.5) end
  data = data .. pack('<I4', row)
  hset(Q.g, field, string.sub(data, -4 * MAX_NAMED))
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
