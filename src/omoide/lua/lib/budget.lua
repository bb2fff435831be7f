-- budget: what the server reader can know of the work of a ranking before it begins
-- Include: tails remains

-- The work of `plan` (of rank): tails of the terms, places of the terms nobody has, postings; whether neighbours and dates
-- count, `skipped` arms that would cost too much, and whether it is refused for the postings, or for these where `strict`.
local function work_of(Q, H, plan)
  look_at_remains(Q, H)
  local W, work = plan.ranking, { tails = hmget(Q.t, plan.terms), unknown = {}, skipped = {} }
  local matching, unknown, skipped = 0, work.unknown, work.skipped
  for i = 1, #plan.terms do
    local live = live_in(plan.terms[i], work.tails[i])
    matching = matching + live
    if live == 0 then unknown[#unknown + 1] = i - 1 end
  end
  work.postings = matching
  for _, terms in ipairs({ plan.must, plan.names }) do
    local lists = hmget(Q.t, terms)
    for i = 1, #terms do work.postings = work.postings + live_in(terms[i], lists[i]) end
  end
  work.borrowing = plan.session and plan.session ~= '' and (W.answer > 0 or W.far > 0)
  if work.borrowing and matching > plan.borrow then
    work.borrowing, skipped[#skipped + 1] = false, 'neighbours'
  end
  work.dated = #plan.dates > 0 and W.date > 0
  if work.dated and H.next > plan.looks then
    work.dated, skipped[#skipped + 1] = false, 'date'
  end
  work.refused = work.postings > plan.budget or (plan.strict and #skipped > 0)
  return work
end

-- For a call that travels with a `rank` of this plan (MessagePack) and is wanted only where that is refused
local function in_vain(Q, H, data)
  return data and not work_of(Q, H, cmsgpack.unpack(data)).refused
end
