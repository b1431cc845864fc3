-- Brings the copies of agent rows up to date: each row only over an older version of itself (A1).
-- KEYS: for each row its version, its load. ARGV: the same.
for i = 1, #KEYS, 2 do
    local known = redis.call('GET', KEYS[i])
    if not known or tonumber(known) < tonumber(ARGV[i]) then
        redis.call('SET', KEYS[i], ARGV[i])
        redis.call('SET', KEYS[i + 1], ARGV[i + 1])
    end
end
return 1
