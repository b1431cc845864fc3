-- The tables of a chat: sessions, messages, agents, decisions, events, uploads, workers.
-- Times are Unix milliseconds; ids are snowflakes (T3) and given by kefu, never by the database.

CREATE TABLE cg_chat_session (
    id INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    user_name TEXT NOT NULL,
    user_avatar TEXT,
    user_vip INTEGER CHECK (user_vip IN (0, 1)),
    status INTEGER NOT NULL CHECK (status IN (0, 1, 2)),
    admin_id TEXT,
    source TEXT NOT NULL,
    balance INTEGER,
    priority INTEGER NOT NULL CHECK (priority BETWEEN -9007199254740992 AND 9007199254740992),
    last_seq INTEGER NOT NULL CHECK (last_seq >= 0),
    last_msg_id INTEGER,
    version INTEGER NOT NULL CHECK (version > 0),
    started_at INTEGER NOT NULL,
    queued_at INTEGER NOT NULL,
    assigned_at INTEGER,
    ended_at INTEGER,
    ended_by TEXT,
    rating INTEGER CHECK (rating BETWEEN 1 AND 5),
    rating_content TEXT,
    rating_time INTEGER,
    noticed_at INTEGER,
    CHECK (status <> 0 OR admin_id IS NULL),
    CHECK (status <> 1 OR admin_id IS NOT NULL),
    CHECK ((status = 2) = (ended_at IS NOT NULL)),
    CHECK ((last_seq = 0) = (last_msg_id IS NULL)),
    CHECK ((rating IS NULL) = (rating_content IS NULL)),
    CHECK ((rating IS NULL) = (rating_time IS NULL))
) STRICT;

-- S1: at most one open session of a user, whatever runs at once.
CREATE UNIQUE INDEX cg_chat_session_open ON cg_chat_session (user_id) WHERE status IN (0, 1);
-- Q1: the waiting line in its order.
CREATE INDEX cg_chat_session_line ON cg_chat_session (priority DESC, id) WHERE status = 0;
CREATE INDEX cg_chat_session_owned ON cg_chat_session (admin_id) WHERE status = 1;
CREATE INDEX cg_chat_session_user ON cg_chat_session (user_id, id);

CREATE TABLE cg_chat_message (
    msg_id INTEGER PRIMARY KEY,
    -- The name under which the integrator's SQL knows the key.
    id INTEGER GENERATED ALWAYS AS (msg_id) VIRTUAL,
    session_id INTEGER NOT NULL REFERENCES cg_chat_session (id),
    seq INTEGER NOT NULL CHECK (seq > 0),
    sender_type TEXT NOT NULL CHECK (sender_type IN ('user', 'agent', 'system', 'bot')),
    sender_id TEXT NOT NULL,
    client_msg_id TEXT NOT NULL,
    msg_type TEXT NOT NULL CHECK (msg_type IN ('text', 'image')),
    -- T4: PostgreSQL cannot hold NUL, so no backend does.
    content TEXT NOT NULL CHECK (instr(content, char(0)) = 0),
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'read', 'failed')),
    create_time INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX cg_chat_message_seq ON cg_chat_message (session_id, seq);
-- T2: unique per session and sender. The session comes last, so that the same index finds a sender's
-- key across sessions.
CREATE UNIQUE INDEX cg_chat_message_key
    ON cg_chat_message (sender_type, sender_id, client_msg_id, session_id);
CREATE INDEX cg_chat_message_undelivered
    ON cg_chat_message (session_id, seq) WHERE status IN ('pending', 'failed');
-- Unread counts and cumulative receipts cost what is unread, not what the session holds.
CREATE INDEX cg_chat_message_unread ON cg_chat_message (session_id, seq) WHERE status <> 'read';
-- U1: which uploads a message shows.
CREATE INDEX cg_chat_message_image ON cg_chat_message (content) WHERE msg_type = 'image';

CREATE TABLE cg_chat_agent (
    admin_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    avatar TEXT,
    availability TEXT NOT NULL CHECK (availability IN ('online', 'offline')),
    max_sessions INTEGER NOT NULL CHECK (max_sessions >= 0),
    active_sessions INTEGER NOT NULL CHECK (active_sessions >= 0),
    -- The decision record that last gave this agent a session.
    last_assigned INTEGER,
    live INTEGER NOT NULL CHECK (live IN (0, 1)),
    live_gen INTEGER NOT NULL,
    gone_since INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE cg_chat_assignment (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES cg_chat_session (id),
    admin_id TEXT,
    from_admin_id TEXT,
    -- JSON array of {adminId, load, maxSessions}.
    candidates TEXT NOT NULL,
    rule TEXT NOT NULL CHECK (rule IN ('least_load', 'claim', 'named', 'none')),
    result TEXT NOT NULL CHECK (result IN ('assigned', 'transferred', 'requeued', 'ended')),
    reason TEXT NOT NULL
        CHECK (reason IN ('drain', 'claim', 'transfer', 'agent_gone', 'agent_offline', 'end')),
    actor TEXT NOT NULL,
    note TEXT,
    time INTEGER NOT NULL
) STRICT;

CREATE INDEX cg_chat_assignment_session ON cg_chat_assignment (session_id, id);

CREATE TABLE cg_chat_outbox (
    -- T3: AUTOINCREMENT only for its memory of the highest id, which outlives the trimmed rows.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_type TEXT NOT NULL,
    schema_version INTEGER NOT NULL CHECK (schema_version > 0),
    time INTEGER NOT NULL,
    source TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    -- Events with the same key are handled in order.
    key TEXT NOT NULL,
    -- The event as JSON.
    payload TEXT NOT NULL,
    confirmed_at INTEGER
) STRICT;

-- Both hold only what the relay and the trimmer look for (N2).
CREATE INDEX cg_chat_outbox_unconfirmed ON cg_chat_outbox (id) WHERE confirmed_at IS NULL;
CREATE INDEX cg_chat_outbox_confirmed
    ON cg_chat_outbox (confirmed_at) WHERE confirmed_at IS NOT NULL;

CREATE TABLE cg_chat_upload (
    path TEXT PRIMARY KEY,
    session_id INTEGER NOT NULL,
    -- user:<id> or agent:<id>
    uploader TEXT NOT NULL,
    mime TEXT NOT NULL CHECK (mime IN ('image/jpeg', 'image/png', 'image/gif')),
    size INTEGER NOT NULL CHECK (size > 0),
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    width INTEGER NOT NULL CHECK (width > 0),
    height INTEGER NOT NULL CHECK (height > 0),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX cg_chat_upload_created ON cg_chat_upload (created_at);

-- T3: snowflake worker ids and who holds them; 0 when embedded.
CREATE TABLE cg_worker (
    worker_id INTEGER PRIMARY KEY CHECK (worker_id BETWEEN 0 AND 1023),
    node TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    expires_at INTEGER NOT NULL
) STRICT;
