-- vocabulary: a page of the words that texts of the partition have
-- KEYS: head
-- ARGV: cursor (0 to begin), how many words at least, unless it ends or has looked at enough (at most 10,000)
-- Returns: gen, next, cursor (0 at the end), words (repeats are possible) | nothing for no partition
-- Cost: O(terms looked at), about 4,096, equality terms among them
-- Include: partition remains
local H = glance(P)
if not H then return {} end
look_at_remains(P, H)
local cursor, least, out, n, looked = ARGV[1], tonumber(ARGV[2]), {}, 0, 0
repeat
  local page = redis.call('HSCAN', P.t, cursor, 'COUNT', 512)
  cursor = page[1]
  looked = looked + #page[2] / 2
  for i = 1, #page[2], 2 do
    local word = page[2][i]
    local first = string.byte(word)
    -- neither equality terms nor exact ones (`=`), nor words too short to resemble another
    if first and first > 31 and first ~= 61 and (#word >= 4 or first > 127)
      and not (owed[word] and live_in(word, page[2][i + 1]) == 0) then
      n = n + 1
      out[n] = word
    end
  end
until cursor == '0' or n >= least or looked >= 4096
return { H.gen, H.next, cursor, out }
