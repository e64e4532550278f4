-- Adds to a counter. Arguments: its name, how much.
local name, by = ARGV[3], tonumber(ARGV[4])
return done(redis.call('HINCRBY', key('facts'), name, by) - by)
