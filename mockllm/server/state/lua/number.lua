-- Counts a request.
return done(redis.call('HINCRBY', key('about'), 'number', 1) - 1)
