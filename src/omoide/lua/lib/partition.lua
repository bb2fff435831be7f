-- partition: the keys of one partition, its head and its clock
--
-- KEYS[1] is the head key; every other key is the same name with another last letter, so all of
-- them share the hash tag and the slot. The shadow of a partition under rebuild has `~` before the letter.
local EPOCH = 1577836800 -- seconds; origin of the decay order (2020-01-01)
local NEVER = -1e13 -- decay order of a base score <= 0: below every positive one, by last touch
local MAX_ROW = 4177919

local key_names = {
  __index = function(self, letter)
    local name = self.base .. letter
    rawset(self, letter, name)
    return name
  end,
}

local function keys_of(base) return setmetatable({ base = base }, key_names) end

local BASE = string.sub(KEYS[1], 1, -2)
local P = keys_of(BASE)

-- While a slot moves key by key, its node refuses every key that is not there, so a key that lost its last entry could
-- not be made again by a rollback. A look at a name that no partition has ends the script before it has done anything.
redis.call('EXISTS', P['!'])

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local HEAD = { 'format', 'fingerprint', 'next', 'n', 'sdl', 'dead', 'gen', 'v', 'x0', 'ordinals', 'shadow', 'lease', 'until',
  'rate', 'peak', 'seq', 'vectors', 'stride', 'timed', 'remains' }

-- The head as a table of numbers (format, fingerprint, gen, shadow, vectors and remains stay text), or nil.
local function read_head(Q)
  local v = redis.call('HMGET', Q.h, unpack(HEAD))
  if not v[3] then return nil end
  return {
    stored = v, format = v[1], fingerprint = v[2], next = tonumber(v[3]), n = tonumber(v[4]), sdl = tonumber(v[5]),
    dead = tonumber(v[6]), gen = v[7], v = tonumber(v[8]), x0 = tonumber(v[9]), ordinals = tonumber(v[10]),
    shadow = v[11] or '', lease = tonumber(v[12] or 0), ['until'] = tonumber(v[13] or 0), rate = tonumber(v[14] or 0),
    peak = tonumber(v[15] or 0), seq = tonumber(v[16] or 0), vectors = v[17] or '', stride = tonumber(v[18] or 0),
    timed = tonumber(v[19] or 0), remains = v[20] or '',
  }
end

-- The part of the head that readers need.
local function glance(Q)
  local v = redis.call('HMGET', Q.h, 'fingerprint', 'next', 'n', 'sdl', 'gen', 'v', 'x0', 'vectors', 'stride', 'timed',
    'remains')
  if not v[2] then return nil end
  return { fingerprint = v[1], next = tonumber(v[2]), n = tonumber(v[3]), sdl = tonumber(v[4]), gen = v[5], v = tonumber(v[6]),
    x0 = tonumber(v[7]), vectors = v[8] or '', stride = tonumber(v[9] or 0), timed = tonumber(v[10] or 0),
    remains = v[11] or '' }
end

-- A head without its companions means that keys were evicted or deleted from outside. `timed`: how many rows the interval
-- column has at least, 0 where no record has an interval.
local function whole(Q, H)
  return redis.call('STRLEN', Q.a) >= (H.next > 1 and H.next * 32 or 0) and redis.call('HLEN', Q.m) == H.n
    and redis.call('HLEN', Q.r) == H.n and (H.timed == 0 or redis.call('STRLEN', Q.w) >= H.timed * 24)
end

local function check_companions(Q, H)
  if not whole(Q, H) then error('CORRUPT a key of the partition is missing or damaged', 0) end
end
