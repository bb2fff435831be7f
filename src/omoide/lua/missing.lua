-- missing: the next records without a vector of a kind, in storage order
-- KEYS: head
-- ARGV: kind, row to start after, size (at most 500)
-- Returns: gen, now, row to go on after (0 at the end), living rows looked at, records, bytes of a vector of the kind (0:
--   there is none) | nothing for no partition
-- Cost: at most 4,096 rows looked at, and 1 MiB of bodies (one at least)
-- Include: records
local H = glance(P)
if not H then return {} end
check_companions(P, H)
local now, row, size = clock(), tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), 500)
local same = ARGV[1] == H.vectors and H.stride > 0
local last = math.min(H.next - 1, row + 4096)
local column = redis.call('GETRANGE', P.a, (row + 1) * 32, last * 32 + 31)
local first, lacking, looked, bytes = row, {}, 0, 0
local none = string.rep('\0', 12)

while row < last and #lacking < size do
  row = row + 1
  if string.byte(column, (row - first - 1) * 32 + 1) % 2 == 0 then
    looked = looked + 1
    local start = same and redis.call('GETRANGE', P.z, row * H.stride, row * H.stride + 11) or ''
    if start == '' or start == none then
      bytes = bytes + redis.call('HSTRLEN', P.r, row)
      if bytes > BODIES and #lacking > 0 then
        row, looked = row - 1, looked - 1
        break
      end
      lacking[#lacking + 1] = row
    end
  end
end
local records = read_records(P, unexpired(P, lacking, now))
return { H.gen, now, row < H.next - 1 and row or 0, looked, records, same and H.stride or 0 }
