-- Counts a request.
return done(redis.call('HINCRBY', key('facts'), 'number', 1) - 1)
