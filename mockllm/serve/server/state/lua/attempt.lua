-- Counts an attempt at a turn. Arguments: turn, after how many attempts the count begins again.
local turn, period = ARGV[3], tonumber(ARGV[4])
local tried = redis.call('HINCRBY', key('attempts'), turn, 1) - 1
if tried + 1 == period then redis.call('HDEL', key('attempts'), turn) end
return done(tried)
