-- embed: vectors of records that have none; those of another kind are dropped first
-- KEYS: head
-- ARGV: kind, gen, then row and slot in turn, at most 250 of each
-- Returns: gen, v, n, sdl, log end, 1 per row that took its vector or else 0 | nothing when the rows were renumbered
-- Cost: O(rows)
-- Include: put
local kind, slots = ARGV[1], {}
for i = 3, #ARGV, 2 do slots[#slots + 1] = { tonumber(ARGV[i]), ARGV[i + 1] } end

return atomically(function()
  local H = read_head(P)
  if not H or H.gen ~= ARGV[2] then return {} end
  check_companions(P, H)
  local S, G = open_shadow(P, H, clock())
  local stride = slots[1] and #slots[1][2] or H.stride
  if H.vectors ~= kind or (H.stride > 0 and H.stride ~= stride) then
    if call('EXISTS', P.z) == 1 then
      drop(P.z)
      H.gen = new_gen()
    end
    H.vectors, H.stride = kind, stride
  end
  local taken = {}
  for i = 1, #slots do
    local row, slot = slots[i][1], slots[i][2]
    taken[i] = 0
    if call('HEXISTS', P.r, row) == 1 and put_slot(P, H, row, kind, slot) ~= '' then
      taken[i] = 1
      append(P.x, pack('<I4', VECTOR + row))
      local copy = S and call('HGET', S.m, footprint_of(P, row).id)
      if copy then put_slot(S, G, tonumber(copy), kind, slot) end
    end
  end
  close_both(P, H, S, G)
  return { H.gen, H.v, H.n, H.sdl, log_end(P, H), taken }
end)
