-- The beginning of each script.
--
-- KEYS[1] is the key of its token, ARGV[1] the prefix of all keys, ARGV[2] the name of a session. A
-- script with a token that it has had returns what it returned then: a caller that lost the answer may
-- send it again. The last step of each is `return done(...)`.
local before = redis.call('GET', KEYS[1])
if before then return before end
local function done(outcome)
  redis.call('SET', KEYS[1], outcome, 'EX', 60)
  return outcome
end
local prefix, session = ARGV[1], ARGV[2]
local SESSIONS, SIZES = prefix .. 'sessions', prefix .. 'sizes'
local function key(part) return prefix .. session .. '/' .. part end
local function forget(outcomes)
  for outcome, count in pairs(outcomes) do
    redis.call('HINCRBY', key('forgotten'), outcome, count)
  end
end
