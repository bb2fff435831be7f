-- unchanged: the answer to a client reader that is up to date, before anything else is set up
--
-- Nothing was written since the client looked, and it is an instant at which the same records are visible (`timed`:
-- from, to; true where the client does not know): its ranking stands, and the records are all it lacks. A record that
-- is not there means damage, which the long way finds out.
local plan = cmsgpack.unpack(ARGV[1])
do
  local head = redis.call('HMGET', KEYS[1], 'gen', 'v', 'fingerprint')
  local stands, now = head[1] == plan.gen and tonumber(head[2]) == plan.v, nil
  if stands and plan.timed then
    local t = redis.call('TIME')
    now = t[1] * 1000 + math.floor(t[2] / 1000)
    stands = type(plan.timed) == 'table' and plan.timed[1] <= now and now < plan.timed[2]
  end
  if stands then
    local base, rows = string.sub(KEYS[1], 1, -2), plan.rows
    if #rows == 0 then return { head[3], {}, {}, {}, now } end
    if #rows <= 1000 then
      local bodies, whole = redis.call('HMGET', base .. 'r', unpack(rows)), true
      for i = 1, #rows do whole = whole and bodies[i] end
      if whole then
        return { head[3], bodies, redis.call('HMGET', base .. 'c', unpack(rows)),
          redis.call('ZMSCORE', base .. 'd', unpack(rows)), now }
      end
    end
  end
end
