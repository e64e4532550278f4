"""What the server of Valkey or Redis does in one step, in Lua.

Each script has the key of its token as `KEYS[1]`, and the prefix of all keys as `ARGV[1]`. A script
with a token that it has had returns what it returned then: a caller that lost the answer may send
it again.
"""

from __future__ import annotations

from mockllm.server.state.store import MOST_NAMES

__all__ = ["APPEND", "ATTEMPT", "CLAIM", "CREATE", "NUMBER", "PARTS"]

PARTS = (
    "journal",
    "played",
    "attempts",
    "answers",
    "kept",
    "conversations",
    "forgotten",
    "about",
)
"""The keys of a session, without its setup."""


def _once(body: str) -> str:
    """A script whose last step is `return done(...)`."""
    return f"""
local before = redis.call('GET', KEYS[1])
if before then return tonumber(before) end
local function done(outcome)
  redis.call('SET', KEYS[1], outcome, 'EX', 60)
  return outcome
end
{body}
"""


ATTEMPT = _once("""
local key, turn, failures = ARGV[1] .. ARGV[2] .. '/attempts', ARGV[3], tonumber(ARGV[4])
local tried = tonumber(redis.call('HGET', key, turn) or '0')
if tried < failures then redis.call('HSET', key, turn, tried + 1)
else redis.call('HDEL', key, turn) end
return done(tried)
""")
"""Arguments: session, turn, failures."""

CLAIM = _once("""
local key = ARGV[1] .. ARGV[2] .. '/played'
for place = 4, #ARGV do
  if redis.call('ZADD', key, 'NX', ARGV[3], ARGV[place]) == 1 then return done(place - 4) end
end
return done(-1)
""")
"""Arguments: session, time, turns."""

NUMBER = _once("""
return done(redis.call('HINCRBY', ARGV[1] .. ARGV[2] .. '/about', 'number', 1) - 1)
""")
"""Arguments: session."""

CREATE = _once("""
if redis.call('ZSCORE', ARGV[1] .. 'sessions', ARGV[2]) then return done(0) end
redis.call('ZADD', ARGV[1] .. 'sessions', ARGV[3], ARGV[2])
return done(1)
""")
"""Arguments: session, time."""

_BOUNDS = (
    """
local prefix, ttl = ARGV[1], ARGV[2]
local most_sessions, most_of_one = tonumber(ARGV[3]), tonumber(ARGV[4])
local most_answers, most = tonumber(ARGV[5]), tonumber(ARGV[6])
local SESSIONS, EVICTED = prefix .. 'sessions', prefix .. 'evicted'
local SIZES, TOTAL = prefix .. 'sizes', prefix .. 'total'
local PARTS = {"""
    + ", ".join(f"'{part}'" for part in PARTS)
    + """}

local function key(session, part) return prefix .. session .. '/' .. part end

local function size_of(session)
  return tonumber(redis.call('HGET', key(session, 'about'), 'bytes') or '0')
end

local function grow(session, by) redis.call('HINCRBY', key(session, 'about'), 'bytes', by) end

local function forget_answer(session, id)
  grow(session, -redis.call('HSTRLEN', key(session, 'answers'), id))
  redis.call('HDEL', key(session, 'answers'), id)
  redis.call('ZREM', key(session, 'kept'), id)
end

local function forget_oldest(session)
  local item = redis.call('LPOP', key(session, 'journal'))
  if not item then return false end
  local cut = string.find(item, '\\n', 1, true)
  local batch, outcomes = string.match(string.sub(item, 1, cut - 1), '^(%d+) (.*)$')
  grow(session, cut - #item)
  for outcome, count in pairs(cjson.decode(outcomes)) do
    redis.call('HINCRBY', key(session, 'forgotten'), outcome, count)
  end
  local before = '(' .. (tonumber(batch) + 1)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key(session, 'kept'), '-inf', before)) do
    forget_answer(session, id)
  end
  return true
end

local function bound_one(session)
  local old = redis.call('ZRANGE', key(session, 'kept'), 0, -most_answers - 1)
  for _, id in ipairs(old) do forget_answer(session, id) end
  while size_of(session) > most_of_one and forget_oldest(session) do end
end

local function note_size(session)
  local size = size_of(session)
  local before = tonumber(redis.call('ZSCORE', SIZES, session) or '0')
  redis.call('ZADD', SIZES, size, session)
  return redis.call('INCRBY', TOTAL, size - before)
end

local function evict_oldest()
  local session, at = unpack(redis.call('ZPOPMIN', SESSIONS))
  for _, part in ipairs(PARTS) do redis.call('DEL', key(session, part)) end
  note_size(session)
  redis.call('ZREM', SIZES, session)
  redis.call('ZADD', EVICTED, at, session)
  redis.call('ZREMRANGEBYRANK', EVICTED, 0, -MOST_NAMES - 1)
  redis.call('EXPIRE', EVICTED, ttl)
  if redis.call('EXISTS', key(session, 'setup')) == 1 then
    redis.call('HSET', key(session, 'setup'), 'gone', '1', 'body', '')
  end
end

-- Sessions expire without a word, so the total may be too high.
local function true_total()
  for _, session in ipairs(redis.call('ZRANGE', SIZES, 0, -1)) do
    note_size(session)
    if redis.call('EXISTS', key(session, 'about')) == 0 then
      redis.call('ZREM', SIZES, session)
    end
  end
  local total = 0
  local sizes = redis.call('ZRANGE', SIZES, 0, -1, 'WITHSCORES')
  for place = 2, #sizes, 2 do total = total + tonumber(sizes[place]) end
  redis.call('SET', TOTAL, total)
  return total
end

-- As in one process: the largest session gives up its oldest entries, and if it has no more than
-- its last ones, the session is evicted that was used least recently. A twentieth is freed at once.
local function bound_all()
  while redis.call('ZCARD', SESSIONS) > most_sessions do evict_oldest() end
  if tonumber(redis.call('GET', TOTAL) or '0') > most and true_total() > most then
    while tonumber(redis.call('GET', TOTAL)) > most - most / 20 do
      local largest = redis.call('ZREVRANGE', SIZES, 0, 0)[1]
      if redis.call('LLEN', key(largest, 'journal')) > 1 then
        forget_oldest(largest)
        note_size(largest)
      elseif redis.call('ZCARD', SESSIONS) > 1 then
        evict_oldest()
      else
        break
      end
    end
  end
  redis.call('EXPIRE', SIZES, ttl)
  redis.call('EXPIRE', TOTAL, ttl)
end
"""
).replace("MOST_NAMES", str(MOST_NAMES))

APPEND = _once(
    _BOUNDS
    + """
local at = 6
local function take(count)
  at = at + (count or 1)
  return ARGV[at]
end

local function touch(session, time)
  redis.call('ZADD', SESSIONS, 'GT', time, session)
  redis.call('HSETNX', key(session, 'about'), 'begun', time)
end

local function add_batch()
  local session, time = take(), take()
  touch(session, time)
  local outcomes, entries = take(), take()
  local number = redis.call('HINCRBY', key(session, 'about'), 'batches', 1)
  redis.call('RPUSH', key(session, 'journal'), number .. ' ' .. outcomes .. '\\n' .. entries)
  grow(session, #entries)
  for _ = 1, tonumber(take()) do
    redis.call('ZADD', key(session, 'played'), 'NX', time, take())
  end
  for place = 0, tonumber(take()) - 1 do
    local id, entry = take(), take()
    grow(session, #entry - redis.call('HSTRLEN', key(session, 'answers'), id))
    redis.call('HSET', key(session, 'answers'), id, entry)
    redis.call('ZADD', key(session, 'kept'), number + place / 1024, id)
  end
  return session
end

local function add_lost()
  local session, time = take(), take()
  touch(session, time)
  for _ = 1, tonumber(take()) do
    local outcome = take()
    redis.call('HINCRBY', key(session, 'forgotten'), outcome, take())
  end
  return session
end

for _, add in ipairs({add_batch, add_lost}) do
  for _ = 1, tonumber(take()) do
    local session = add()
    bound_one(session)
    note_size(session)
    for _, part in ipairs(PARTS) do redis.call('EXPIRE', key(session, part), ttl) end
    redis.call('EXPIRE', key(session, 'setup'), ttl)
  end
end
bound_all()
return done(0)
"""
)
"""Arguments: the seconds until a session expires, the bounds (see `Bounds`), the number of batches
and each, the number of sessions with lost requests and each.

A batch: session, time, outcomes as JSON, entries, number of turns and each, number of answers and
each as id and entry. Lost requests: session, time, number of outcomes and each with its count.
"""
