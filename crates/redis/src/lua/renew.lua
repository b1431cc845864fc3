-- Extends a lease, or brings it back: the connection itself is the proof (P1).
-- KEYS and ARGV as in acquire.lua, without the limit.
local since, leases, latest, online = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease, ttl, silence = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call('ZREMRANGEBYSCORE', leases, '-inf', string.format('%.0f', now))
redis.call('ZADD', leases, string.format('%.0f', now + ttl), lease)
local last = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')[2]
redis.call('PEXPIREAT', leases, last)
-- An older connection does not take the place of the latest while that one lives.
local held = redis.call('GET', latest)
if not held or held == lease then
    redis.call('SET', latest, lease, 'PX', ttl)
end
if online then
    redis.call('SET', online, 'online', 'PXAT', last)
end
if redis.call('PEXPIRE', since, silence) == 0 then
    redis.call('SET', since, string.format('%.0f', now), 'PX', silence)
end
return 1
