-- footprint: what a record left behind, so that it can be taken out without a trace (field `row` of `f`)
--
--   | 8 bytes operation | u16 evicted | u8 n | n x (8 bytes operation, u16 evicted) | u8 k | id | chain | MessagePack list |
--
-- First what wrote it and how many records that evicted, then up to 4 writes before, latest first. k = 0: the id is a
-- UUID, as 16 bytes; else k bytes of text. The chain of versions (lib/chains.lua), where it is in one: u8 length, below
-- 128, and its name; a MessagePack list starts with a greater byte. The list: terms, unique digests, session, author, entities.
local MOST_EARLIER = 4

local function footprint_bytes(operation, evicted, earlier, rest)
  return operation .. struct.pack('<I2B', evicted, #earlier / 10) .. earlier .. rest
end

-- data, where the id starts -> id, where the list starts
local function id_at(data, at)
  local length = string.byte(data, at)
  if length > 0 then return string.sub(data, at + 1, at + length), at + length + 1 end
  return string.format('%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x',
    string.byte(data, at + 1, at + 16)), at + 17
end

local function id_of(data) return id_at(data, 12 + string.byte(data, 11) * 10) end

-- The same with another chain, nil for none; `start`: where the id starts
local function with_chain(data, start, chain)
  local _, at = id_at(data, start)
  local length = string.byte(data, at)
  local rest = string.sub(data, length < 128 and at + 1 + length or at)
  return string.sub(data, 1, at - 1) .. (chain and string.char(#chain) .. chain or '') .. rest
end

-- The list as named parts, and the chain; `start`: where the id starts
local function parts_of(data, start)
  local id, at = id_at(data, start)
  local length, chain = string.byte(data, at), nil
  if length < 128 then
    chain = string.sub(data, at + 1, at + length)
    at = at + 1 + length
  end
  local list = cmsgpack.unpack(string.sub(data, at))
  return { id = id, chain = chain, terms = list[1], unique = list[2], session = list[3], author = list[4], entities = list[5] }
end

local function parse_footprint(data)
  if not data then error('CORRUPT a footprint is missing', 0) end
  local earlier = string.byte(data, 11) * 10
  local foot = parts_of(data, 12 + earlier)
  foot.operation, foot.evicted = string.sub(data, 1, 8), struct.unpack('<I2', data, 9)
  foot.earlier = string.sub(data, 12, 11 + earlier)
  return foot
end
