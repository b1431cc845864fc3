-- For how many ms no lease was lost for want of a Redis (P4).
-- KEYS: since when leases are held. ARGV: how long a silence loses leases in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local since = redis.call('GET', KEYS[1])
if not since then
    redis.call('SET', KEYS[1], string.format('%.0f', now), 'PX', ARGV[1])
    return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return math.max(0, now - tonumber(since))
