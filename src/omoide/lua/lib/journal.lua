-- journal: writes that can be taken back
--
-- Redis does not roll a script back. Every write goes through one of these functions, which reads
-- what it is about to change and notes the command that restores it. `atomically(verb)` runs a verb
-- and, when anything in it fails (a wrong type, a denied command, an overflow, a fault in the script),
-- restores all of it in reverse order: a verb happens whole or not at all.
--
-- The way back has to be open before a step is taken: `note` refuses where the user may not run the
-- command that restores. A key that loses its last entry loses its expiry too, so `keep_expiry` notes it.
-- What is dropped whole is put aside first and freed when nothing can fail any more.
local call, pcall_redis = redis.call, redis.pcall
local pack, unpack_bytes = struct.pack, struct.unpack
local undo, undone, doomed = {}, 0, {}
local may, kept = {}, {} -- command -> true, key -> true: what was looked at already

-- One look a command: the keys of a partition differ in their last letter only.
local function need_leave(command, key, ...)
  if may[command] then return end
  if not redis.acl_check_cmd(command, key, ...) then
    error("NOPERM this user has no permissions to run the '" .. string.lower(command) .. "' command", 0)
  end
  may[command] = true
end

local function note(command, key, ...)
  if command == 'truncate' then
    need_leave('SET', key, '')
    need_leave('DEL', key)
  elseif command == 'RENAME' then
    need_leave(command, key, ...)
  else
    need_leave(command, key) -- keys are all that rules look at
  end
  undone = undone + 1
  undo[undone] = { command, key, ... }
end

local function keep_expiry(key)
  if kept[key] then return end
  kept[key] = true
  local at = call('PEXPIRETIME', key)
  if at > 0 then note('PEXPIREAT', key, at) end
end

-- In these, `old` is what the caller knows of the place already: its value, false for "nothing there", nil to look.
local function hset(key, field, value, old)
  if old == nil then old = call('HGET', key, field) end
  if old then note('HSET', key, field, old) else note('HDEL', key, field) end
  call('HSET', key, field, value)
end

-- names, values and old values (nil: to be looked for) are lists of equal length; at most 500 pairs go in one command
local function hset_many(key, names, values, known)
  local old = known or call('HMGET', key, unpack(names))
  need_leave('HSET', key)
  need_leave('HDEL', key)
  undone = undone + 1
  undo[undone] = { 'fields', key, names, old }
  for first = 1, #names, 500 do
    local pairs_, n = {}, 0
    for i = first, math.min(#names, first + 499) do
      pairs_[n + 1], pairs_[n + 2] = names[i], values[i]
      n = n + 2
    end
    call('HSET', key, unpack(pairs_, 1, n))
  end
end

-- names of fields that are there, and their values
local function hdel_many(key, names, old)
  if #names == 0 then return end
  keep_expiry(key)
  need_leave('HSET', key)
  undone = undone + 1
  undo[undone] = { 'fields', key, names, old }
  for first = 1, #names, 1000 do call('HDEL', key, unpack(names, first, math.min(#names, first + 999))) end
end

local function restore_fields(key, names, old)
  for i = 1, #names do
    if old[i] then pcall_redis('HSET', key, names[i], old[i]) else pcall_redis('HDEL', key, names[i]) end
  end
end

local function hdel(key, field, old)
  if old == nil then old = call('HGET', key, field) end
  if old then
    keep_expiry(key)
    note('HSET', key, field, old)
    call('HDEL', key, field)
  end
end

local function zadd(key, score, member, old)
  if old == nil then old = call('ZSCORE', key, member) end
  if old then note('ZADD', key, old, member) else note('ZREM', key, member) end
  call('ZADD', key, score, member)
end

local function zrem(key, member)
  local old = call('ZSCORE', key, member)
  if old then
    keep_expiry(key)
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
  if old then
    keep_expiry(key)
    note('SET', key, old)
  else
    note('DEL', key)
  end
  call('SET', key, value, 'KEEPTTL')
end

-- A column of `bytes` a row grows by a 64th, up to 1 MiB: left alone, the server doubles a string that grows. What is
-- beyond the last row is zeros.
local function make_room(key, row, bytes)
  local length = call('STRLEN', key)
  if row * bytes < length then return end
  local wanted = (row + 1 + math.floor(row / 64)) * bytes
  if wanted < 1048576 then set(key, call('GETRANGE', key, 0, -1) .. string.rep('\0', wanted - length)) end
end

local function del(key)
  local old = call('GET', key)
  if old then
    keep_expiry(key)
    note('SET', key, old)
    call('DEL', key)
  end
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

-- Let go of a key of any type.
local function drop(key)
  local aside = key .. '-'
  rename(key, aside)
  doomed[#doomed + 1] = aside
end

local function rollback()
  for i = undone, 1, -1 do
    local entry = undo[i]
    if entry[1] == 'fields' then
      restore_fields(entry[2], entry[3], entry[4])
    elseif entry[1] ~= 'truncate' then
      pcall_redis(unpack(entry))
    elseif entry[3] == 0 then
      pcall_redis('DEL', entry[2])
    else
      pcall_redis('SET', entry[2], pcall_redis('GETRANGE', entry[2], 0, entry[3] - 1), 'KEEPTTL')
    end
  end
end

local function atomically(verb)
  local done, result = pcall(function()
    local answer = verb()
    if #doomed > 0 then call('UNLINK', unpack(doomed)) end
    return answer
  end)
  if done then return result end
  rollback()
  if type(result) == 'table' then return redis.error_reply(result.err or 'ERR script failed') end
  return redis.error_reply((string.gsub(tostring(result), '^.-(%u+ )', '%1', 1)))
end
