-- bulk: filling a copy that nobody reads yet
-- Include: mirrored
--
-- The caller is the only one who writes to the copy: it numbers the rows and puts the postings of a term together. The write
-- counter of the copy says which command comes next, so that one that comes again changes nothing. Nothing is taken back when
-- one fails: the copy is dropped then.

-- The copy and its head, when this command is the next; else nothing, nothing and what to answer
local function copy_at(plan)
  local Q, H = rebuilt(plan.token)
  if not Q or H.v < plan.step then return nil, nil, -1 end
  if H.v > plan.step then return nil, nil, 0 end
  return Q, H
end

-- Lists of names and sizes in turn: the values, which follow each other in `data`, take the place of their sizes.
local function take_values(lists, data)
  local at = 1
  for _, list in ipairs(lists) do
    for i = 2, #list, 2 do
      local till = at + list[i]
      list[i], at = string.sub(data, at, till - 1), till
    end
  end
end

-- 500 pairs at a time
local function in_pieces(list, take)
  for from = 1, #list, 1000 do take(unpack(list, from, math.min(from + 999, #list))) end
end
