-- staged: postings of a long record, put in by commands of their own before the one that stores it
-- Include: journal remains postings
--
-- What is staged has the next row, which is nobody's yet, and the last entry among the remains: readers count it nowhere. The
-- write that stores the record takes it up. A write that needs a row before makes it a dead one, like that of a record that is
-- gone, and the record is stored by one command.
local NO_ID = '\1-'

-- Row, terms taken out, terms of what is staged; nil
local function staged(H)
  if H.remains == '' then return nil end
  local row, done, terms = unpack_bytes(REMAIN, H.remains, #H.remains - REMAIN_BYTES + 1)
  if row == H.next then return row, done, terms end
end

local function forget_staged(H) H.remains = string.sub(H.remains, 1, -REMAIN_BYTES - 1) end

-- How many terms are staged under a name of 8 bytes
local function staged_as(Q, H, name)
  local row, done, terms = staged(H)
  if row and done == 0 and string.sub(call('HGET', Q.f, row), 1, 8) == name then return terms end
  return 0
end

-- Let what is staged have its row for good.
local function bury_staged(Q, H)
  if not staged(H) then return end
  make_room(Q.a, H.next, 32)
  setrange(Q.a, H.next * 32, '\1' .. string.rep('\0', 31))
  if H.timed > 0 then -- readers take rows and their intervals together
    setrange(Q.w, H.next * 24, string.rep('\0', 24))
    H.timed = H.next + 1
  end
  H.next, H.dead, H.buried = H.next + 1, H.dead + 1, true
end

-- Put in these postings, after the `first` that are staged under the name; how many are then. Where others are, or the
-- beginning is lost, there is nothing to go on with.
local function stage(Q, H, name, first, terms, codes)
  local before = staged_as(Q, H, name)
  if before ~= first then return before end
  if before == 0 then bury_staged(Q, H) end
  local row, data, all = H.next, call('HGET', Q.f, H.next), {}
  if row > MAX_ROW then error('FULL the partition has no rows left: reindex it', 0) end
  if before > 0 then
    all = parse_footprint(data).terms
    forget_staged(H)
  end
  append_postings(Q, row, terms, codes)
  for i = 1, #terms do all[before + i] = terms[i] end
  hset(Q.f, row, footprint_bytes(name, 0, '', NO_ID .. cmsgpack.pack({ all, {} })), data)
  H.remains = H.remains .. pack(REMAIN, row, 0, #all)
  hset(Q.h, 'remains', H.remains)
  if H['until'] > 0 then -- a key that this made goes with the others
    for _, key in ipairs({ Q.t, Q.s, Q.f }) do expire_at(key, H['until']) end
  end
  return #all
end
