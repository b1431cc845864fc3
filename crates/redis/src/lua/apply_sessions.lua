-- Brings the copies of session rows up to date: each row only over an older version of itself (A1).
-- KEYS: the line, the open sessions, then for each row its version, its owner, its user's session.
-- ARGV: how many seconds an ended row is remembered, then for each row its version, its status
-- (0 waiting, 1 active, 2 ended), its id, its member in the line, its score there, its owner.
local line, open, keep = KEYS[1], KEYS[2], ARGV[1]

-- Ids have 64 bits, numbers here 53: of two decimals the longer one is larger.
local function is_larger(a, b)
    if #a ~= #b then
        return #a > #b
    end
    return a > b
end

local function apply(held, owner, active, version, status, id, member, score, admin)
    local known = redis.call('GET', held)
    if known and tonumber(known) >= tonumber(version) then
        return
    end
    local current = redis.call('GET', active)
    if status == '2' then
        redis.call('DEL', owner)
        redis.call('ZREM', line, member)
        redis.call('SREM', open, id)
        if current == id then
            redis.call('DEL', active)
        end
        -- For latecomers; a session that ended longer ago changes no more.
        redis.call('SET', held, version, 'EX', keep)
        return
    end
    if status == '1' then
        redis.call('SET', owner, admin)
        redis.call('ZREM', line, member)
    else
        redis.call('DEL', owner)
        redis.call('ZADD', line, score, member)
    end
    redis.call('SADD', open, id)
    -- A user has one open session: the larger id is the newer one.
    if not current or not is_larger(current, id) then
        redis.call('SET', active, id)
    end
    redis.call('SET', held, version)
end

local key, arg = 3, 2
while key <= #KEYS do
    apply(KEYS[key], KEYS[key + 1], KEYS[key + 2],
        ARGV[arg], ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4], ARGV[arg + 5])
    key, arg = key + 3, arg + 6
end
return 1
