-- versions: putting records into their chains and taking them out; see chains
-- Include: journal partition chains
local TOLD = 'told'
local mended = {} -- row of the partition -> the end it had, of those whose end was changed

local function tell(Q, row) append(Q.x, pack('<I4', row)) end

-- The versions just before and just after a member
local function beside(Q, chain, member)
  local before = call('ZREVRANGEBYLEX', Q.v, '(' .. member, '[' .. chain, 'LIMIT', 0, 1)[1]
  local after = call('ZRANGEBYLEX', Q.v, '(' .. member, '(' .. chain .. '\255', 'LIMIT', 0, 1)[1]
  return before and version_at(chain, before), after and version_at(chain, after)
end

-- From when a row is valid; nil for a row of a model that had no validity
local function start_of(Q, row)
  if call('STRLEN', Q.w) <= row * 24 then return nil end
  local _, from, till = interval_of(Q, row)
  if from ~= 0 or till ~= 0 then return from end
end

-- Give a version another end.
local function set_end(Q, version, till)
  local row = tonumber(call('HGET', Q.m, version.id) or error('CORRUPT a version has no record', 0))
  local _, _, old = interval_of(Q, row)
  if old == till then return end
  setrange(Q.w, row * 24 + 16, pack('<i8', till))
  if till == OPEN then zrem(Q.o, row) else zadd(Q.o, string.format('%.17g', till), row) end
  tell(Q, row)
  if Q == P and not mended[row] then mended[row] = old end
end

-- Put a version in its place. Returns its end, and the version that ends where it starts, if any.
-- `told`: its end where authoritative rows say it; they tell of the others apart.
local function enter(Q, chain, from, id, own, told)
  local member = member_of(chain, from, id, own)
  zadd(Q.v, 0, member, false)
  if told then return told end
  local before, after = beside(Q, chain, member)
  local closed = before and from < before.own and before.id or nil
  if closed then set_end(Q, before, from) end
  return after and math.min(own, after.from) or own, closed
end

-- Take a version out. `seal`: its time was, the version before keeps its end; TOLD: authoritative rows say what it gets.
local function leave(Q, row, foot, seal)
  local version = version_of(Q, row, foot)
  if not version then error('CORRUPT a version is missing', 0) end
  zrem(Q.v, version.member)
  if seal == TOLD then return end
  local before, after = beside(Q, foot.chain, version.member)
  if not before then return end
  if not seal then
    set_end(Q, before, after and math.min(before.own, after.from) or before.own)
  elseif version.from < before.own then
    zrem(Q.v, before.member)
    zadd(Q.v, 0, member_of(foot.chain, before.from, before.id, version.from), false)
  end
end

-- What the sealing of a row leaves: chain, id and own end of the version before; nil where there is none
local function sealed_by(Q, row, foot)
  local version = foot.chain and version_of(Q, row, foot)
  local before = version and beside(Q, foot.chain, version.member)
  if before and version.from < before.own then return { chain = foot.chain, id = before.id, own = version.from } end
end

-- Give the version of a row this own end, unless it has an earlier one or its chain is another.
local function seal_row(Q, row, foot, sealed)
  local version = foot.chain == sealed.chain and version_of(Q, row, foot)
  if not version or version.own <= sealed.own then return end
  local _, after = beside(Q, foot.chain, version.member)
  zrem(Q.v, version.member)
  zadd(Q.v, 0, member_of(foot.chain, version.from, version.id, sealed.own), false)
  set_end(Q, version, after and math.min(sealed.own, after.from) or sealed.own)
end

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
