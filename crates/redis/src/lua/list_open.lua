-- One page of the open sessions. KEYS: the open sessions. ARGV: cursor, about how many.
return redis.call('SSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
