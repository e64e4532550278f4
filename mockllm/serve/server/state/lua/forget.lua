-- Forgets the oldest batch of a journal; how many bytes that were.
if redis.call('XLEN', key('journal')) < 2 then return done(0) end
local id, fields = unpack(redis.call('XRANGE', key('journal'), '-', '+', 'COUNT', 1)[1])
local _, outcomes, _, entries = unpack(fields)
redis.call('XDEL', key('journal'), id)
redis.call('ZREMRANGEBYSCORE', key('answers'), '-inf', string.match(id, '%d+'))
redis.call('ZINCRBY', SIZES, -#entries, session)
forget(cjson.decode(outcomes))
return done(#entries)
