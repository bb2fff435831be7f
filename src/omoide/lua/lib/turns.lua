-- turns: what was given to a prompt, for 24 hours
-- Include: journal
--
-- `i`: turn id -> MessagePack {until, ids = {id: 0 | 1 once its outcome is told}}; `o`: turn id by expiry.
local TURN_MS = 86400000

local function read_turn(Q, name, now)
  local data = call('HGET', Q.i, name)
  if not data then return nil end
  local turn = cmsgpack.unpack(data)
  if turn.till <= now then return nil end
  return turn
end

local function store_turn(Q, name, turn) hset(Q.i, name, cmsgpack.pack(turn)) end

local function begin_turn(Q, name, ids, now)
  local over = call('ZRANGEBYSCORE', Q.o, '-inf', now, 'LIMIT', 0, 16)
  for i = 1, #over do
    hdel(Q.i, over[i])
    zrem(Q.o, over[i])
  end
  local turn = read_turn(Q, name, now) or { ids = {} }
  turn.till = now + TURN_MS
  for i = 1, #ids do turn.ids[ids[i]] = turn.ids[ids[i]] or 0 end
  store_turn(Q, name, turn)
  zadd(Q.o, string.format('%d', turn.till), name)
  expire_at(Q.i, turn.till)
  expire_at(Q.o, turn.till)
end

local function count(Q, counters)
  for i = 1, #counters do
    local name, delta = counters[i][1], counters[i][2]
    hset(Q.n, name, string.format('%d', tonumber(call('HGET', Q.n, name) or 0) + delta))
  end
end
