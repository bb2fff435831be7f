-- index: add postings, and who is named where, of records that load has added to a copy
-- KEYS: head
-- ARGV: plan (MessagePack map: token, step, and lists of pairs: terms (term, bytes of its postings), entities (field, bytes of its
--   rows)), values
-- Returns: 1 added, 0 they are there already, -1 the rebuild is over
-- Cost: O(distinct terms), each read and written once
-- Include: bulk
local plan = cmsgpack.unpack(ARGV[1])
local Q, H, answer = copy_at(plan)
if not Q then return answer end

-- What is there goes on with what comes: `joined(name, held, more)`
local function growing(letter, list, joined)
  in_pieces(list, function(...)
    local taken, names = { ... }, {}
    for i = 1, #taken, 2 do names[#names + 1] = taken[i] end
    local held = call('HMGET', Q[letter], unpack(names))
    for i = 1, #names do taken[2 * i] = joined(names[i], held[i] or '', taken[2 * i]) end
    call('HSET', Q[letter], unpack(taken))
  end)
end

-- A tail with more postings after it; what is full, and more comes, is sealed.
local function longer(term, tail, data)
  local start = string.byte(tail) == 255 and 13 or 1
  if #tail - start + 1 + #data <= SEALED_BYTES then return tail .. data end
  local sealed, nulls = 0, 0
  if start > 1 then sealed, nulls = parse_tail(tail) end
  data = string.sub(tail, start) .. data
  local at = 1
  while #data - at >= SEALED_BYTES do
    local blocks = math.min(16 - sealed % 16, math.ceil((#data - at + 1) / SEALED_BYTES) - 1)
    local name, till = segment_name(term, math.floor(sealed / 16)), at + blocks * SEALED_BYTES
    local held = sealed % 16 > 0 and call('HGET', Q.s, name) or ''
    call('HSET', Q.s, name, held .. string.sub(data, at, till - 1))
    sealed, at = sealed + blocks, till
  end
  local last = math.floor(unpack_bytes('>I4', data, at - 4) / 1024)
  return pack('>I4I4I4', MARK + sealed, nulls, last) .. string.sub(data, at)
end

local function latest(_, held, rows) return string.sub(held .. rows, -4 * MAX_NAMED) end

take_values({ plan.terms, plan.entities }, ARGV[2])
growing('t', plan.terms, longer)
growing('g', plan.entities, latest)
close(Q, H)
return 1
