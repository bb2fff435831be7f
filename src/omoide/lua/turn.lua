-- turn: the records a turn was given that are still there
-- KEYS: head
-- ARGV: turn id
-- Returns: now, records | nothing for an unknown turn
-- Cost: O(records)
-- Include: head records turns
local H, now = read_head(P), clock()
local turn = H and read_turn(P, ARGV[1], now)
if not turn then return {} end
local rows = {}
for id in pairs(turn.ids) do
  local row = call('HGET', P.m, id)
  if row and not expired(P, row, now) then rows[#rows + 1] = tonumber(row) end
end
table.sort(rows)
return { now, read_records(P, rows) }
