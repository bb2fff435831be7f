-- unchanged: the answer to a client reader that is up to date, before anything else is set up
--
-- Nothing was written since the client looked and nothing expires: its ranking stands, and the records are all it
-- lacks. A record that is not there means damage, which the long way finds out.
local plan = cmsgpack.unpack(ARGV[1])
do
  local head = redis.call('HMGET', KEYS[1], 'gen', 'v', 'fingerprint')
  if not plan.timed and head[1] == plan.gen and tonumber(head[2]) == plan.v then
    local base, rows = string.sub(KEYS[1], 1, -2), plan.rows
    if #rows == 0 then return { head[3] } end
    if #rows <= 1000 then
      local bodies, whole = redis.call('HMGET', base .. 'r', unpack(rows)), true
      for i = 1, #rows do whole = whole and bodies[i] end
      if whole then
        return { head[3], bodies, redis.call('HMGET', base .. 'c', unpack(rows)),
          redis.call('ZMSCORE', base .. 'd', unpack(rows)) }
      end
    end
  end
end
