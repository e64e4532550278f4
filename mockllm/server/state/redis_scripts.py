"""What the server of Valkey or Redis does in one step, in Lua.

Each script has the key of its token as `KEYS[1]`, and the prefix of all keys and the name of a
session as its first arguments. A script with a token that it has had returns what it returned then:
a caller that lost the answer may send it again.
"""

from __future__ import annotations

__all__ = ["APPEND", "ATTEMPT", "CLAIM", "CREATE", "FORGET", "NUMBER", "PARTS"]

PARTS = ("journal", "played", "attempts", "answers", "conversations", "forgotten", "about")
"""The keys of a session, without its setup."""


def _script(body: str) -> str:
    """A script whose last step is `return done(...)`."""
    return f"""
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
{body}
"""


ATTEMPT = _script("""
local turn, failures = ARGV[3], tonumber(ARGV[4])
local tried = redis.call('HINCRBY', key('attempts'), turn, 1) - 1
if tried >= failures then redis.call('HDEL', key('attempts'), turn) end
return done(tried)
""")
"""Further arguments: turn, failures."""

CLAIM = _script("""
for place = 4, #ARGV do
  if redis.call('ZADD', key('played'), 'NX', ARGV[3], ARGV[place]) == 1 then
    return done(place - 4)
  end
end
return done(-1)
""")
"""Further arguments: time, turns."""

NUMBER = _script("""
return done(redis.call('HINCRBY', key('about'), 'number', 1) - 1)
""")

CREATE = _script("""
local now, ttl, version = ARGV[3], ARGV[4], ARGV[5]
if redis.call('ZSCORE', SESSIONS, session) then return done(0) end
redis.call('ZADD', SESSIONS, now, session)
if version ~= '' then
  redis.call('ZREM', prefix .. 'evicted', session)
  redis.call('DEL', key('setup'))
  redis.call('HSET', key('setup'), 'version', version, 'body', ARGV[6])
  redis.call('EXPIRE', key('setup'), ttl)
end
redis.call('HSETNX', key('about'), 'begun', now)
redis.call('EXPIRE', key('about'), ttl)
return done(1)
""")
"""Further arguments: time, the seconds until a session expires, version and body of its setup (""
for a session without)."""

FORGET = _script("""
if redis.call('XLEN', key('journal')) < 2 then return done(0) end
local id, fields = unpack(redis.call('XRANGE', key('journal'), '-', '+', 'COUNT', 1)[1])
local _, outcomes, _, entries = unpack(fields)
redis.call('XDEL', key('journal'), id)
redis.call('ZREMRANGEBYSCORE', key('answers'), '-inf', string.match(id, '%d+'))
redis.call('ZINCRBY', SIZES, -#entries, session)
forget(cjson.decode(outcomes))
return done(#entries)
""")

APPEND = _script(
    """
local parts = {'setup', PARTS}
local ttl = ARGV[3]
local function add(batch, entries)
  session = batch.session
  redis.call('ZADD', SESSIONS, 'GT', batch.at, session)
  redis.call('HSETNX', key('about'), 'begun', batch.at)
  redis.call('ZINCRBY', SIZES, #entries, session)
  forget(batch.lost)
  for _, turn in ipairs(batch.played) do
    redis.call('ZADD', key('played'), 'NX', batch.at, turn)
  end
  if #entries > 0 then
    local number = redis.call('HINCRBY', key('about'), 'batches', 1)
    local outcomes = cjson.encode(batch.outcomes)
    redis.call('XADD', key('journal'), number .. '-0', 'outcomes', outcomes, 'entries', entries)
    for _, id in ipairs(batch.answers) do redis.call('ZADD', key('answers'), number, id) end
  end
  for _, part in ipairs(parts) do redis.call('EXPIRE', key(part), ttl) end
end
for place, batch in ipairs(cjson.decode(ARGV[4])) do add(batch, ARGV[4 + place]) end
redis.call('EXPIRE', SIZES, ttl)
local total, largest = 0, 0
local sizes = redis.call('ZRANGE', SIZES, 0, -1, 'WITHSCORES')
for place = 2, #sizes, 2 do
  total, largest = total + sizes[place], math.max(largest, sizes[place])
end
return done(cjson.encode({redis.call('ZCARD', SESSIONS), total, largest}))
""".replace("PARTS", ", ".join(f"'{part}'" for part in PARTS))
)
"""Further arguments: the seconds until a session expires, the fields of all batches as JSON, and
the entries of each. `session` is empty. The outcome is the `Totals`, as JSON; sessions that expired
may be counted."""
