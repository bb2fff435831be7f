-- spread: best-path propagation over the graph from seed records
-- KEYS: head
-- ARGV: plan (MessagePack map: seeds = list of {id, score}, hops, fan_out, decay, limit, valid (as for rank))
-- Returns: id, score, ... strongest first, ties by id; seeds left out
-- Cost: O(seeds x fan_out ^ hops), at most 4,096 nodes
-- Include: records footprint
local plan = cmsgpack.unpack(ARGV[1])
if redis.call('EXISTS', P.h) == 0 then return {} end

local best, start, frontier = {}, {}, {}
for i = 1, #plan.seeds do
  local row = redis.call('HGET', P.m, plan.seeds[i][1])
  if row then
    row = tonumber(row)
    start[row] = true
    best[row] = math.max(best[row] or 0, plan.seeds[i][2])
    frontier[#frontier + 1] = row
  end
end

local visited = #frontier
for _ = 1, plan.hops do
  local reached, next_frontier = {}, {}
  for i = 1, #frontier do
    local data = redis.call('HGET', P.g, frontier[i]) or ''
    for at = 1, math.min(#data, plan.fan_out * 8), 8 do
      local row, weight = struct.unpack('<I4f', data, at)
      local score = best[frontier[i]] * plan.decay * weight / (1 + weight)
      if not start[row] and score > (reached[row] or best[row] or 0) and (best[row] or visited < 4096) then
        if not best[row] and not reached[row] then visited = visited + 1 end
        if not reached[row] then next_frontier[#next_frontier + 1] = row end
        reached[row] = score
      end
    end
  end
  for row, score in pairs(reached) do best[row] = score end
  table.sort(next_frontier)
  frontier = next_frontier
end

local now, found = clock(), {}
mask(plan.valid, now)
for row, score in pairs(best) do
  if not start[row] and not expired(P, row, now) and not invalid(P, row) then
    local foot = redis.call('HGET', P.f, row)
    found[#found + 1] = { id_of(foot), score }
  end
end
table.sort(found, function(a, b)
  if a[2] ~= b[2] then return a[2] > b[2] end
  return a[1] < b[1]
end)
local out = {}
for i = 1, math.min(plan.limit, #found) do
  out[2 * i - 1], out[2 * i] = found[i][1], string.format('%.17g', found[i][2])
end
return out
