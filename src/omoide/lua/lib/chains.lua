-- chains: records of one semantic key, in the order of the instants from which they are valid
-- Include: partition footprint
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

local function instant(ms) return struct.pack('>I8', ms + BIAS) end

local function member_of(chain, from, id, own) return chain .. instant(from) .. id .. '\0' .. instant(own) end

local function version_at(chain, member)
  return { member = member, id = string.sub(member, #chain + 9, -10), from = struct.unpack('>I8', member, #chain + 1) - BIAS,
    own = struct.unpack('>I8', member, #member - 7) - BIAS }
end

local function interval_of(Q, row) return struct.unpack('<i8i8i8', redis.call('GETRANGE', Q.w, row * 24, row * 24 + 23)) end

-- The place of a row in its chain; nil when it has none
local function version_of(Q, row, foot)
  local _, from = interval_of(Q, row)
  local first = foot.chain .. instant(from) .. foot.id .. '\0'
  local found = redis.call('ZRANGEBYLEX', Q.v, '[' .. first, '(' .. first .. '\255')
  for i = 1, #found do
    if #found[i] == #first + 8 then return version_at(foot.chain, found[i]) end
  end
end

-- The chain of a footprint when it is not that of a key
local function unkeyed(chain) return chain and string.sub(chain, 1, 1) == 's' and chain or nil end
