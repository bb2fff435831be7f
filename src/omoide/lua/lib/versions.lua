-- versions: records of one semantic key, in the order of the instants from which they are valid
-- Include: journal partition footprint
--
-- `v` holds a member per version. All have score 0, so that they stand in byte order:
--
--   | chain | u64 valid from + 2^52, big endian | id | 0 | u64 own end + 2^52, big endian |
--
-- `chain` is what the versions of one key have in common: `k` and a digest of the key, or, where one record superseded
-- another that has no key, `s` and 24 hexadecimal digits. The own end is what the record itself says, OPEN for none.
-- A version is valid until its own end or until the next one starts, whichever comes first. The interval column holds
-- that. It depends on the set of versions alone, so they may come in any order. `o`: row -> end, of each that has one.
--
-- What is taken out by a user was never true: the version before lasts until the next one. What goes by itself (expiry,
-- eviction) was: the version before is sealed, its own end becomes what its end was.
local OPEN, BIAS = 4503599627370496, 4503599627370496

local mended = {} -- row of the partition -> the end it had, of those whose end was changed

local function tell(Q, row) append(Q.x, pack('<I4', row)) end

local function instant(ms) return pack('>I8', ms + BIAS) end

local function member_of(chain, from, id, own) return chain .. instant(from) .. id .. '\0' .. instant(own) end

local function version_at(chain, member)
  return { member = member, id = string.sub(member, #chain + 9, -10), from = unpack_bytes('>I8', member, #chain + 1) - BIAS,
    own = unpack_bytes('>I8', member, #member - 7) - BIAS }
end

-- The versions just before and just after a member
local function beside(Q, chain, member)
  local before = call('ZREVRANGEBYLEX', Q.v, '(' .. member, '[' .. chain, 'LIMIT', 0, 1)[1]
  local after = call('ZRANGEBYLEX', Q.v, '(' .. member, '(' .. chain .. '\255', 'LIMIT', 0, 1)[1]
  return before and version_at(chain, before), after and version_at(chain, after)
end

local function interval_of(Q, row) return unpack_bytes('<i8i8i8', call('GETRANGE', Q.w, row * 24, row * 24 + 23)) end

-- From when a row is valid; nil for a row of a model that had no validity
local function start_of(Q, row)
  if call('STRLEN', Q.w) <= row * 24 then return nil end
  local _, from, till = interval_of(Q, row)
  if from ~= 0 or till ~= 0 then return from end
end

-- Give a version another end.
local function set_end(Q, version, till)
  local row = tonumber(call('HGET', Q.m, version.id))
  local _, _, old = interval_of(Q, row)
  if old == till then return end
  setrange(Q.w, row * 24 + 16, pack('<i8', till))
  if till == OPEN then zrem(Q.o, row) else zadd(Q.o, string.format('%.17g', till), row) end
  tell(Q, row)
  if Q == P and not mended[row] then mended[row] = old end
end

-- Put a version in its place. Returns its end, and the version that ends where it starts, if any.
local function enter(Q, chain, from, id, own)
  local member = member_of(chain, from, id, own)
  zadd(Q.v, 0, member, false)
  local before, after = beside(Q, chain, member)
  local closed = before and from < before.own and before.id or nil
  if closed then set_end(Q, before, from) end
  return after and math.min(own, after.from) or own, closed
end

-- The place of a row in its chain; nil when it has none
local function version_of(Q, row, foot)
  local _, from = interval_of(Q, row)
  local first = foot.chain .. instant(from) .. foot.id .. '\0'
  local found = call('ZRANGEBYLEX', Q.v, '[' .. first, '(' .. first .. '\255')
  for i = 1, #found do
    if #found[i] == #first + 8 then return version_at(foot.chain, found[i]) end
  end
end

-- Take a version out. `seal`: its time was, the version before keeps its end.
local function leave(Q, row, foot, seal)
  local version = version_of(Q, row, foot)
  if not version then error('CORRUPT a version is missing', 0) end
  zrem(Q.v, version.member)
  local before, after = beside(Q, foot.chain, version.member)
  if not before then return end
  if not seal then
    set_end(Q, before, after and math.min(before.own, after.from) or before.own)
  elseif version.from < before.own then
    zrem(Q.v, before.member)
    zadd(Q.v, 0, member_of(foot.chain, before.from, before.id, version.from), false)
  end
end

-- The chain of a footprint when it is not that of a key
local function unkeyed(chain) return chain and string.sub(chain, 1, 1) == 's' and chain or nil end

-- Whether a row has another end than before this script
local function has_new_end(row)
  local _, _, till = interval_of(P, row)
  return mended[row] ~= nil and mended[row] ~= till
end

-- Rows that have another end and are still there, each with its interval: for the caller's cache
local function mended_rows()
  local out = {}
  for row in pairs(mended) do
    if call('HEXISTS', P.r, row) == 1 and has_new_end(row) then
      out[#out + 1] = { row, call('GETRANGE', P.w, row * 24, row * 24 + 23) }
    end
  end
  return out
end
