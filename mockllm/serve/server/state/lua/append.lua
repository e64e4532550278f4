-- Writes batches, of any sessions. Arguments: the seconds until a session expires, the names of its
-- keys and the fields of all batches as JSON, and the entries of each. The outcome is the `Totals`, as JSON; sessions that have
-- expired may be counted.
local ttl, parts = ARGV[3], cjson.decode(ARGV[4])
local function add(batch, entries)
  session = batch.session
  for _, mark in ipairs(batch.cleared) do redis.call('SREM', key('marks'), mark) end
  if #entries == 0 and next(batch.lost) == nil then return end
  redis.call('ZADD', SESSIONS, 'GT', batch.at, session)
  redis.call('HSETNX', key('facts'), 'begun', batch.at)
  redis.call('ZINCRBY', SIZES, #entries, session)
  forget(batch.lost)
  for _, turn in ipairs(batch.played) do
    redis.call('ZADD', key('played'), 'NX', batch.at, turn)
  end
  if #entries > 0 then
    local number = redis.call('HINCRBY', key('facts'), 'batches', 1)
    local outcomes = cjson.encode(batch.outcomes)
    redis.call('XADD', key('journal'), number .. '-0', 'outcomes', outcomes, 'entries', entries)
    for _, id in ipairs(batch.answers) do redis.call('ZADD', key('answers'), number, id) end
  end
  for _, part in ipairs(parts) do redis.call('EXPIRE', key(part), ttl) end
end
for place, batch in ipairs(cjson.decode(ARGV[5])) do add(batch, ARGV[5 + place]) end
redis.call('EXPIRE', SIZES, ttl)
local total, largest = 0, 0
local sizes = redis.call('ZRANGE', SIZES, 0, -1, 'WITHSCORES')
for place = 2, #sizes, 2 do
  total, largest = total + sizes[place], math.max(largest, sizes[place])
end
return done(cjson.encode({redis.call('ZCARD', SESSIONS), total, largest}))
