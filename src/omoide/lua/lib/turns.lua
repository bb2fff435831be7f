-- turns: what was given to a prompt, kept for a day or what the caller says
-- Include: journal
--
-- `i`: turn id -> i64 end of its time (ms), MessagePack map: id -> what it took (1 an outcome, 2 an echo; 0 nothing yet).
-- Every new turn looks at three others, taken at random, and drops what is over: in the long run at most about a
-- quarter of them is. The key lives as long as its last turn, and up to an hour longer.

local function read_turn(Q, name, now)
  local data = call('HGET', Q.i, name)
  if not data then return nil end
  if #data < 9 then error('CORRUPT a turn is cut short', 0) end
  local till = unpack_bytes('<i8', data)
  if till <= now then return nil end
  local readable, ids = pcall(cmsgpack.unpack, string.sub(data, 9))
  if not readable or type(ids) ~= 'table' then error('CORRUPT a turn is not what was written', 0) end
  return { till = till, ids = ids }
end

local function store_turn(Q, name, turn, old) hset(Q.i, name, pack('<i8', turn.till) .. cmsgpack.pack(turn.ids), old) end

local function drop_some_over(Q, now)
  local sample = call('HRANDFIELD', Q.i, 3, 'WITHVALUES')
  for at = 1, #sample, 2 do
    local data = sample[at + 1]
    if #data < 9 or unpack_bytes('<i8', data) <= now then hdel(Q.i, sample[at], data) end
  end
end

local function begin_turn(Q, name, ids, now, ttl)
  drop_some_over(Q, now)
  local turn = read_turn(Q, name, now) or { ids = {} }
  turn.till = now + ttl
  for i = 1, #ids do turn.ids[ids[i]] = turn.ids[ids[i]] or 0 end
  store_turn(Q, name, turn)
  if call('PEXPIRETIME', Q.i) < turn.till then expire_at(Q.i, turn.till + 3600000) end
end

local function count(Q, counters)
  for i = 1, #counters do
    local name, delta = counters[i][1], counters[i][2]
    hset(Q.n, name, string.format('%d', tonumber(call('HGET', Q.n, name) or 0) + delta))
  end
  if #counters > 0 then expire_at(Q.n, tonumber(call('HGET', Q.h, 'until') or 0)) end
end
