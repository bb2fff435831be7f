-- fetch: what a client reader lacks, and the records it expects to return
-- KEYS: head
-- ARGV: plan (MessagePack map: gen, v (0 unless all terms are known up to there), have (rows held), log (position in the change log), terms, since (row per term),
--   rows (records wanted), whole (all short lists too), timed (records may expire), vectors (kind wanted, or empty), stride,
--   slots (row from which they are wanted), most (bytes of vectors beyond which none are)); the plan of a `rank` beside it, where
--   only its refusal makes this one wanted
-- Returns: gen, v, n, sdl, next, log end, now, first row of the attributes, attributes, intervals, changed rows,
--   changed attributes, changed intervals, per term live count and postings (none at all when v is the same), records (without attributes), vocabulary, fingerprint,
--   {kind, stride, first row, row after the last, slots, rows of later vectors, their slots} (the first two alone: not to be had)
--   | fingerprint, bodies, statistics, decay order, now where records may expire: nothing is new | nothing for no partition, or where not wanted
-- Cost: O(terms + records) when the client is up to date; else plus the bytes it lacks, attributes and vectors at most 1 MiB each
-- Include: unchanged records remains budget
local H = glance(P)
if not H or in_vain(P, H, ARGV[2]) then return {} end
check_companions(P, H)
look_at_remains(P, H)

local PIECE = 32768 -- attribute rows in 1 MiB
local NEWEST = 32
local same = plan.gen == H.gen
local log = H.x0 + redis.call('STRLEN', P.x) / 4
local have = same and plan.log >= H.x0 and plan.have or 1
local timed

local function column(first, last)
  if first > last then return '', '' end
  if timed == nil then timed = redis.call('EXISTS', P.w) == 1 end
  return redis.call('GETRANGE', P.a, first * 32, last * 32 + 31),
    timed and redis.call('GETRANGE', P.w, first * 24, last * 24 + 23) or ''
end

local attributes, intervals = column(have, math.min(H.next, have + PIECE) - 1)

-- Rows that changed since the client looked, each once; `later`: those whose vector came after the row
local later, changed, changed_attributes, changed_intervals = {}, {}, {}, {}
if have > 1 and log > plan.log then
  local entries, seen, n = redis.call('GETRANGE', P.x, (plan.log - H.x0) * 4, -1), {}, 0
  for at = 1, #entries, 4 do
    local row = struct.unpack('<I4', entries, at)
    if row >= 2147483648 then
      later[#later + 1] = row - 2147483648
    elseif row < have and not seen[row] then
      seen[row], n = true, n + 1
      changed[n] = struct.pack('<I4', row)
      changed_attributes[n], changed_intervals[n] = column(row, row)
    end
  end
end

-- Vectors from the first row that the client lacks, and those that came later to rows before
local vectors, wanted_kind = {}, plan.vectors or ''
if wanted_kind ~= '' then vectors = { H.vectors, H.stride } end
if wanted_kind ~= '' and H.vectors == wanted_kind and H.stride == plan.stride and H.n * (H.stride - 12) <= plan.most then
  local at_once, stride = math.floor(1048576 / H.stride), H.stride
  local from = have > 1 and #later <= at_once and plan.slots or 1
  local to = math.max(from, math.min(H.next, from + at_once))
  local rows, slots = {}, {}
  for i = 1, #later do
    if later[i] < from then
      rows[#rows + 1] = struct.pack('<I4', later[i])
      slots[#rows] = redis.call('GETRANGE', P.z, later[i] * stride, (later[i] + 1) * stride - 1)
    end
  end
  local whole = from < to and redis.call('GETRANGE', P.z, from * stride, to * stride - 1) or ''
  vectors = { H.vectors, stride, from, to, whole, table.concat(rows), table.concat(slots) }
end

-- Postings of a row that nobody has yet are not for a reader, who takes lists by rows.
local function of_rows(data)
  if H.remains == '' or #data < 4 or struct.unpack('>I4', data, #data - 3) < H.next * 1024 then return data end
  return string.sub(data, 1, -5)
end

local lists, terms = {}, same and plan.v == H.v and {} or plan.terms
local tails = hmget(P.t, terms)
for i = 1, #terms do
  local tail = tails[i]
  local live = live_in(terms[i], tail)
  if live > 0 then
    lists[2 * i - 1], lists[2 * i] = live, of_rows(postings_since(P, terms[i], tail, same and plan.since[i] or 0))
  else
    lists[2 * i - 1], lists[2 * i] = 0, ''
  end
end

local vocabulary = false
if plan.whole and H.remains == '' and redis.call('HLEN', P.t) <= 4096 then vocabulary = redis.call('HGETALL', P.t) end

-- The records expected, and those of the newest rows that a list lacks, which may well come before them
local now, wanted = clock(), same and plan.rows or {}
if #wanted > 0 then
  local new, held = H.next, {}
  for i = 1, #plan.since do new = math.min(new, plan.since[i] + 1) end
  for i = 1, #wanted do held[wanted[i]] = true end
  for row = math.max(new, H.next - NEWEST), H.next - 1 do
    if not held[row] then wanted[#wanted + 1] = row end
  end
end
wanted = unexpired(P, wanted, now)

return { H.gen, H.v, H.n, string.format('%d', H.sdl), H.next, log, now, have, attributes, intervals,
  table.concat(changed), table.concat(changed_attributes), table.concat(changed_intervals), lists,
  #wanted > 0 and read_records(P, wanted, true) or {}, vocabulary, H.fingerprint, vectors }
