-- left: how many keys a partition has, those of its shadow and those put aside included
-- KEYS: head
-- ARGV:
-- Returns: how many
-- Cost: O(1)
-- Include: partition
local shadow, left = keys_of(P.base .. '~'), 0
for at = string.byte('a'), string.byte('z') do
  local letter = string.char(at)
  for _, key in ipairs({ P[letter], shadow[letter] }) do
    left = left + redis.call('EXISTS', key, key .. '-')
  end
end
return { left }
