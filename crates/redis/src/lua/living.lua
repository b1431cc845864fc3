-- The live leases of each person.
-- KEYS: the leases of each.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local living = {}
for i, leases in ipairs(KEYS) do
    living[i] = redis.call('ZRANGEBYSCORE', leases, '(' .. string.format('%.0f', now), '+inf')
end
return living
