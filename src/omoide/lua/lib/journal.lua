-- journal: writes that can be taken back
--
-- Redis does not roll a script back. Every write goes through one of these functions, which reads
-- what it is about to change and notes the command that restores it. `atomically(verb)` runs a verb
-- and, when anything in it fails (a wrong type, a denied command, an overflow, a fault in the script),
-- restores all of it in reverse order: a verb happens whole or not at all.
local call, pcall_redis = redis.call, redis.pcall
local pack, unpack_bytes = struct.pack, struct.unpack
local undo, undone = {}, 0

local function note(...)
  undone = undone + 1
  undo[undone] = { ... }
end

local function hset(key, field, value)
  local old = call('HGET', key, field)
  if old then note('HSET', key, field, old) else note('HDEL', key, field) end
  call('HSET', key, field, value)
end

-- names and values are lists of equal length; at most 500 pairs go in one command
local function hset_many(key, names, values)
  for first = 1, #names, 500 do
    local last = math.min(#names, first + 499)
    local old = call('HMGET', key, unpack(names, first, last))
    local restore, gone, pairs_, n, m, k = { 'HSET', key }, { 'HDEL', key }, {}, 2, 2, 0
    for i = first, last do
      local before = old[i - first + 1]
      if before then
        restore[n + 1], restore[n + 2] = names[i], before
        n = n + 2
      else
        m = m + 1
        gone[m] = names[i]
      end
      pairs_[k + 1], pairs_[k + 2] = names[i], values[i]
      k = k + 2
    end
    if n > 2 then note(unpack(restore)) end
    if m > 2 then note(unpack(gone)) end
    call('HSET', key, unpack(pairs_))
  end
end

local function hdel(key, field)
  local old = call('HGET', key, field)
  if old then
    note('HSET', key, field, old)
    call('HDEL', key, field)
  end
end

local function zadd(key, score, member)
  local old = call('ZSCORE', key, member)
  if old then note('ZADD', key, old, member) else note('ZREM', key, member) end
  call('ZADD', key, score, member)
end

local function zrem(key, member)
  local old = call('ZSCORE', key, member)
  if old then
    note('ZADD', key, old, member)
    call('ZREM', key, member)
  end
end

local function append(key, value)
  note('truncate', key, call('STRLEN', key))
  call('APPEND', key, value)
end

local function setrange(key, offset, value)
  local length = call('STRLEN', key)
  if offset + #value <= length then
    note('SETRANGE', key, offset, call('GETRANGE', key, offset, offset + #value - 1))
  else
    if offset < length then note('SETRANGE', key, offset, call('GETRANGE', key, offset, -1)) end
    note('truncate', key, length)
  end
  call('SETRANGE', key, offset, value)
end

local function set(key, value)
  local old = call('GET', key)
  if old then note('SET', key, old) else note('DEL', key) end
  call('SET', key, value)
end

-- at: milliseconds since the epoch, or 0 for "never"
local function expire_at(key, at)
  local old = call('PEXPIRETIME', key)
  if old == -2 or (old == -1 and at == 0) or old == at then return end
  if old == -1 then note('PERSIST', key) else note('PEXPIREAT', key, old) end
  if at == 0 then call('PERSIST', key) else call('PEXPIREAT', key, at) end
end

local function rename(from, to)
  if call('EXISTS', from) == 1 then
    note('RENAME', to, from)
    call('RENAME', from, to)
  end
end

local function rollback()
  for i = undone, 1, -1 do
    local entry = undo[i]
    if entry[1] ~= 'truncate' then
      pcall_redis(unpack(entry))
    elseif entry[3] == 0 then
      pcall_redis('DEL', entry[2])
    else
      pcall_redis('SET', entry[2], pcall_redis('GETRANGE', entry[2], 0, entry[3] - 1))
    end
  end
end

local function atomically(verb)
  local done, result = pcall(verb)
  if done then return result end
  rollback()
  if type(result) == 'table' then return redis.error_reply(result.err or 'ERR script failed') end
  return redis.error_reply((string.gsub(tostring(result), '^.-(%u+ )', '%1', 1)))
end
