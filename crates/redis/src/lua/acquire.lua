-- Adds a lease unless the person has the limit of others on its node (P1, L2).
-- KEYS: since when leases are held, the person's leases, their latest connection, and for an agent
-- that they are online. ARGV: lease, its ttl in ms, limit, how long a silence loses leases in ms,
-- what leases of its node begin with.
-- Answers how many the person has now, or false.
local since, leases, latest, online = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease, ttl, limit, silence = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local node = ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call('ZREMRANGEBYSCORE', leases, '-inf', string.format('%.0f', now))
local others, of_node = 0, 0
for _, other in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if other ~= lease then
        others = others + 1
        if string.sub(other, 1, #node) == node then
            of_node = of_node + 1
        end
    end
end
if of_node >= limit then
    return false
end
redis.call('ZADD', leases, string.format('%.0f', now + ttl), lease)
local last = redis.call('ZREVRANGE', leases, 0, 0, 'WITHSCORES')[2]
redis.call('PEXPIREAT', leases, last)
redis.call('SET', latest, lease, 'PX', ttl)
if online then
    redis.call('SET', online, 'online', 'PXAT', last)
end
if redis.call('PEXPIRE', since, silence) == 0 then
    redis.call('SET', since, string.format('%.0f', now), 'PX', silence)
end
return others + 1
