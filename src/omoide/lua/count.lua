-- count: how many live records there are, and the state of the partition
-- KEYS: head
-- ARGV:
-- Returns: live, dead, rows, gen, v, fingerprint, 1 when no key is missing or damaged or else 0 | nothing for no partition
-- Cost: O(log N)
-- Include: records

-- What a step answers, or nil where what is stored stops it; the trouble of a server is raised.
local function attempt(step, ...)
  local done, result = pcall(step, ...)
  if done then return result end
  if type(result) == 'table' and not string.find(result.err or '', '^WRONGTYPE') then error(result, 0) end
  return nil
end

local function due(Q) return redis.call('ZCOUNT', Q.e, '-inf', clock()) end

local read, H = attempt(function() return { read_head(P) } end)
if read and not read[1] and redis.call('EXISTS', P.h) == 0 then return {} end
H = read and read[1] or {}
local sound = H.n and H.dead and H.next and H.v and H.sdl and H.x0 and H.gen and H.fingerprint
local gone = attempt(due, P)
sound = sound and gone and attempt(whole, P, H)
return { (H.n or 0) - (gone or 0), H.dead or 0, (H.next or 1) - 1, H.gen or '', H.v or 0, H.fingerprint or '', sound and 1 or 0 }
