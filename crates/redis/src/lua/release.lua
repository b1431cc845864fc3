-- Gives a lease up.
-- KEYS: the person's leases, their latest connection, and for an agent that they are online.
-- ARGV: lease. Answers how many the person still has.
local leases, latest, online = KEYS[1], KEYS[2], KEYS[3]
local lease = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call('ZREM', leases, lease)
redis.call('ZREMRANGEBYSCORE', leases, '-inf', string.format('%.0f', now))
local next = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')
if not next[1] then
    redis.call('DEL', latest)
    if online then
        redis.call('DEL', online)
    end
    return 0
end
redis.call('PEXPIREAT', leases, next[2])
if redis.call('GET', latest) == lease then
    redis.call('SET', latest, next[1], 'PXAT', next[2])
end
if online then
    redis.call('SET', online, 'online', 'PXAT', next[2])
end
return redis.call('ZCARD', leases)
