-- edges: all edges of some records
-- KEYS: head
-- ARGV: ids (MessagePack list), at most 512
-- Returns: one list per id: other id, weight as text, in turn
-- Cost: O(edges)
-- Include: footprint partition graph
local found = {}
for place, id in ipairs(cmsgpack.unpack(ARGV[1])) do
  local row = redis.call('HGET', P.m, id)
  local list = {}
  local rows, weights, n = {}, {}, 0
  if row then rows, weights, n = edges_of(P, row) end
  for i = 1, n do
    local data = redis.call('HGET', P.f, rows[i])
    if not data then error('CORRUPT a footprint is missing', 0) end
    list[2 * i - 1], list[2 * i] = id_of(data), string.format('%.17g', weights[i])
  end
  found[place] = list
end
return found
