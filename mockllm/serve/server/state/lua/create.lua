-- Makes a session; 1, or 0 where there is one. Arguments: time, the seconds until a session expires,
-- version and body of its setup ("" for a session without).
local now, ttl, version = ARGV[3], ARGV[4], ARGV[5]
if redis.call('ZSCORE', SESSIONS, session) then return done(0) end
redis.call('ZADD', SESSIONS, now, session)
if version ~= '' then
  redis.call('ZREM', prefix .. 'evicted', session)
  redis.call('DEL', key('setup'))
  redis.call('HSET', key('setup'), 'version', version, 'body', ARGV[6])
  redis.call('EXPIRE', key('setup'), ttl)
end
redis.call('HSETNX', key('facts'), 'begun', now)
redis.call('EXPIRE', key('facts'), ttl)
return done(1)
