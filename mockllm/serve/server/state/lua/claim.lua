-- Notes the first of some turns that was not played; its place, or -1. Arguments: time, turns.
for place = 4, #ARGV do
  if redis.call('ZADD', key('played'), 'NX', ARGV[3], ARGV[place]) == 1 then
    return done(place - 4)
  end
end
return done(-1)
