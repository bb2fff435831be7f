-- turns: what was given to a prompt, kept for a day or what the caller says
-- Include: journal
--
-- `i`: turn id -> MessagePack {until, ids = {id: what it took: 1 an outcome, 2 an echo}}; `o`: turn id by expiry.

local function read_turn(Q, name, now)
  local data = call('HGET', Q.i, name)
  if not data then return nil end
  local turn = cmsgpack.unpack(data)
  if turn.till <= now then return nil end
  return turn
end

local function store_turn(Q, name, turn) hset(Q.i, name, cmsgpack.pack(turn)) end

-- The keys live as long as their last turn, and up to an hour longer, so that not every turn has to say so.
local function keep_until(key, at)
  if call('PEXPIRETIME', key) < at then expire_at(key, at + 3600000) end
end

local function begin_turn(Q, name, ids, now, ttl)
  local over = call('ZRANGEBYSCORE', Q.o, '-inf', now, 'LIMIT', 0, 16)
  for i = 1, #over do
    hdel(Q.i, over[i])
    zrem(Q.o, over[i])
  end
  local turn = read_turn(Q, name, now) or { ids = {} }
  turn.till = now + ttl
  for i = 1, #ids do turn.ids[ids[i]] = turn.ids[ids[i]] or 0 end
  store_turn(Q, name, turn)
  zadd(Q.o, string.format('%d', turn.till), name)
  keep_until(Q.i, turn.till)
  keep_until(Q.o, turn.till)
end

local function count(Q, counters)
  for i = 1, #counters do
    local name, delta = counters[i][1], counters[i][2]
    hset(Q.n, name, string.format('%d', tonumber(call('HGET', Q.n, name) or 0) + delta))
  end
  if #counters > 0 then expire_at(Q.n, tonumber(call('HGET', Q.h, 'until') or 0)) end
end
