-- turn: the records a turn was given that are still there
-- KEYS: head
-- ARGV: turn id
-- Returns: now, gen, rows, their records as far as 1 MiB of bodies goes (one at least) | nothing for an unknown turn
-- Cost: O(records)
-- Include: head records turns
local H, now = read_head(P), clock()
local turn = H and read_turn(P, ARGV[1], now)
if not turn then return {} end
local rows = {}
for id in pairs(turn.ids) do
  local row = call('HGET', P.m, id)
  if row then rows[#rows + 1] = tonumber(row) end
end
table.sort(rows)
rows = unexpired(P, rows, now)
return { now, H.gen, rows, read_records(P, first_of(rows, fitting(P, rows, BODIES))) }
