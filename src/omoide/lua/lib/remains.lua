-- remains: rows whose record is gone while some of their postings are still in the lists
-- Include: partition tails footprint
--
-- What one command takes out is bounded. A record with more terms goes at once with all but its postings; its dead row keeps
-- its footprint, and the head says how far its postings are taken out:
--
--   n x | u32 row | u32 terms taken out | u32 terms |
--
-- Writes that erase go on with it, and so does `sweep` until nothing is left. Readers count such a row nowhere.
local REMAIN, REMAIN_BYTES = '<I4I4I4', 12

local gone, owed, looked = {}, {}, false -- row -> true, term -> postings of such rows

local function look_at_remains(Q, H)
  if looked then return end
  looked = true
  for at = 1, #H.remains, REMAIN_BYTES do
    local row, done = struct.unpack(REMAIN, H.remains, at)
    local terms = parse_footprint(redis.call('HGET', Q.f, row)).terms
    gone[row] = true
    for i = done + 1, #terms do owed[terms[i]] = (owed[terms[i]] or 0) + 1 end
  end
end

-- Postings that are still to be taken out
local function left_in(H)
  local left = 0
  for at = 1, #H.remains, REMAIN_BYTES do
    local _, done, terms = struct.unpack(REMAIN, H.remains, at)
    left = left + terms - done
  end
  return left
end

-- Postings of live rows
local function live_in(term, tail)
  if not tail then return 0 end
  local _, _, _, _, live = parse_tail(tail)
  return live - (owed[term] or 0)
end
