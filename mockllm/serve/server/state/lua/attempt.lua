-- Counts an attempt at a turn. Arguments: turn, how many attempts fail.
local turn, failures = ARGV[3], tonumber(ARGV[4])
local tried = redis.call('HINCRBY', key('attempts'), turn, 1) - 1
if tried >= failures then redis.call('HDEL', key('attempts'), turn) end
return done(tried)
