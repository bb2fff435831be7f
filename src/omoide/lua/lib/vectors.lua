-- vectors: what the texts of records mean, one slot a row (string `z`, row r at byte r x stride)
--
--   | 8 bytes digest of the text | f32 scale | i8 x dimensions |        stride = 12 + dimensions; all zeros: none
--
-- All vectors of a partition are of one kind (provider and source, `vectors` in the head) and of one stride; the first
-- one settles both. The column ends at 256 MiB: rows beyond stay without.
-- Include: journal partition
local MOST_VECTORS = 268435456
local VECTOR = 2147483648 -- added to a row in the change log: its vector came later than the row

local function slot_of(Q, H, row)
  return H.stride > 0 and call('GETRANGE', Q.z, row * H.stride, (row + 1) * H.stride - 1) or ''
end

-- The slot of a record: the one given; given its digest alone, the one of the row it replaces, when that has the same text
local function chosen_slot(plan, carry)
  local given, held = plan.slot or '', carry.slot or ''
  if #given > 8 then return given end
  return given ~= '' and string.sub(held, 1, 8) == given and held or ''
end

-- Returns what was written, '' where slots of this kind have no place.
local function put_slot(Q, H, row, kind, slot)
  if #slot <= 12 then return '' end
  if H.vectors == '' or (H.vectors == kind and H.stride == 0) then H.vectors, H.stride = kind, #slot end
  if H.vectors ~= kind or H.stride ~= #slot or (row + 1) * #slot > MOST_VECTORS then return '' end
  make_room(Q.z, row, #slot)
  setrange(Q.z, row * #slot, slot)
  return slot
end

local function clear_slot(Q, H, row)
  if H.stride > 0 and call('STRLEN', Q.z) > row * H.stride then
    setrange(Q.z, row * H.stride, string.rep('\0', H.stride))
  end
end
