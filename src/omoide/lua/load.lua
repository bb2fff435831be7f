-- load: add the next records to a copy that nobody reads yet, all but their postings (see index)
-- KEYS: head
-- ARGV: plan (MessagePack map, see below), attribute rows (32 bytes each; session and author are places in `names`, 0 for none),
--   interval rows (24 bytes each, or empty), values
-- Returns: 1 added, 0 they are there already, -1 the rebuild is over
-- Cost: O(records)
-- Include: bulk
--
-- The plan: token, step, first row, rows (how many), length (sum), peak, vectors, names (lists of a session or author name and
-- how many records it has here), and lists of pairs, one pair after the other:
--
--   ids        id, row                bodies, footprints, statistics, slots     row, bytes of its value
--   unique     digest, row
--   orders     decay order, row
--   expiries   expiry (ms), row
--   ends       end of validity (ms), row, of those that have one
--   versions   0, bytes of its member of `v` (lib/chains.lua)
local plan = cmsgpack.unpack(ARGV[1])
local Q, H, answer = copy_at(plan)
if not Q then return answer end
if plan.first + plan.rows - 1 > MAX_ROW then error('FULL the partition has no rows left', 0) end

local function hash(letter, list)
  in_pieces(list, function(...) call('HSET', Q[letter], ...) end)
end

local function sorted(letter, list)
  in_pieces(list, function(...) call('ZADD', Q[letter], ...) end)
end

-- Attribute rows with the ordinals of names in the place of their places
local function numbered(attributes)
  if #plan.names == 0 then return attributes end
  local ordinals, parts = { [0] = 0 }, {}
  for i = 1, #plan.names do
    local name, count = plan.names[i][1], plan.names[i][2]
    local data, before = call('HGET', Q.k, name), 0
    if data then
      ordinals[i], before = unpack_bytes('<I4I4', data)
    else
      H.ordinals = H.ordinals + 1
      ordinals[i] = H.ordinals
    end
    call('HSET', Q.k, name, pack('<I4I4', ordinals[i], before + count))
  end
  for at = 1, #attributes, 32 do
    local session, author = unpack_bytes('<I4I4', attributes, at + 12)
    parts[#parts + 1] = string.sub(attributes, at, at + 11) .. pack('<I4I4', ordinals[session], ordinals[author])
      .. string.sub(attributes, at + 20, at + 31)
  end
  return table.concat(parts)
end

take_values({ plan.bodies, plan.footprints, plan.statistics, plan.slots, plan.versions }, ARGV[4])
call('SETRANGE', Q.a, plan.first * 32, numbered(ARGV[2]))
call('SETRANGE', Q.w, plan.first * 24, ARGV[3])
if #ARGV[3] > 0 then H.timed = plan.first + plan.rows end
hash('m', plan.ids)
hash('r', plan.bodies)
hash('f', plan.footprints)
hash('c', plan.statistics)
hash('q', plan.unique)
sorted('d', plan.orders)
sorted('e', plan.expiries)
sorted('o', plan.ends)
sorted('v', plan.versions)
for i = 1, #plan.slots, 2 do put_slot(Q, H, plan.slots[i], plan.vectors, plan.slots[i + 1]) end
H.next, H.n, H.sdl = plan.first + plan.rows, H.n + plan.rows, H.sdl + plan.length
H.peak = math.max(H.peak, plan.peak)
close(Q, H)
return 1
