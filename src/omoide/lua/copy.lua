-- copy: re-index one record into the shadow, with what the store itself knows of it
-- KEYS: head
-- ARGV: plan (as for save, with token, lease, row), footprint, body, slot of its vector (as for save)
-- Returns: 1 copied, 0 skipped (gone or changed meanwhile: the change has reached the shadow), -1 the rebuild is over
-- Cost: O(distinct terms)
-- Include: put
local plan, foot_bytes, body = cmsgpack.unpack(ARGV[1]), ARGV[2], ARGV[3]
plan.slot, plan.vectors = ARGV[4] or '', plan.vectors or ''

-- The instant of the last touch, back from the decay order of the old half-life
local function touched(H, row, base)
  local z = tonumber(call('ZSCORE', P.d, row))
  if H.rate == 0 then return z end
  if z < NEVER / 2 then return z - NEVER end
  if base <= 0 then return nil end
  return (z - math.log(base)) / H.rate + EPOCH
end

return atomically(function()
  local now = clock()
  local H = read_head(P)
  local S, G
  if H then S, G = open_shadow(P, H, now) end
  if not S or H.shadow ~= plan.token then return -1 end
  local result = 0
  if call('HGET', P.m, plan.id) == tostring(plan.row) and call('HEXISTS', S.m, plan.id) == 0 then
    local _, confidence, _, base, _, _, version, time =
      unpack_bytes('<I2I2I4fI4I4I4i8', call('GETRANGE', P.a, plan.row * 32, plan.row * 32 + 31))
    local expires = call('ZSCORE', P.e, plan.row)
    local before = footprint_of(P, plan.row)
    plan.operation = before.operation
    local valid_from, own_end
    if plan.validity then
      local chain = plan.chain or unkeyed(before.chain)
      foot_bytes = with_chain(foot_bytes, 1, chain)
      valid_from = start_of(P, plan.row)
      local version = valid_from and chain and chain == before.chain and version_of(P, plan.row, before)
      own_end = version and version.own or nil
    end
    local row = put(S, G, plan, parts_of(foot_bytes, 1), foot_bytes, body, {
      version = version, confidence = confidence, time = time, statistics = call('HGET', P.c, plan.row) or nil,
      touched = touched(H, plan.row, base), expires = expires and tonumber(expires) or nil,
      evicted = before.evicted, earlier = before.earlier, copied = true, old = false, valid_from = valid_from,
      own_end = own_end, slot = slot_of(P, H, plan.row),
    }, now)
    copy_edges(P, plan.row, S, row)
    result = 1
  end
  hset(S.h, 'copied', plan.row)
  close(S, G)
  H.lease = now + plan.lease
  hset(P.h, 'lease', H.lease)
  return result
end)
