-- Adds to a counter. Arguments: its name, how much; 0 only reads it.
local name, by = ARGV[3], tonumber(ARGV[4])
if by == 0 then return done(tonumber(redis.call('HGET', key('facts'), name) or 0)) end
return done(redis.call('HINCRBY', key('facts'), name, by) - by)
