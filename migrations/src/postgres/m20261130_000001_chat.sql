-- The tables of a chat: sessions, messages, agents, decisions, events, uploads, workers.
-- Times are Unix milliseconds; ids are snowflakes (T3) and given by kefu, never by the database.
-- Names and keys compare byte by byte, whatever the database's own collation is: their order is part
-- of the ports' contracts.

CREATE TABLE cg_chat_session (
    id BIGINT PRIMARY KEY,
    user_id TEXT COLLATE "C" NOT NULL,
    user_name TEXT NOT NULL,
    user_avatar TEXT,
    user_vip BOOLEAN,
    status SMALLINT NOT NULL CHECK (status IN (0, 1, 2)),
    admin_id TEXT COLLATE "C",
    source TEXT NOT NULL,
    balance BIGINT,
    priority BIGINT NOT NULL CHECK (priority BETWEEN -9007199254740992 AND 9007199254740992),
    last_seq BIGINT NOT NULL CHECK (last_seq >= 0),
    last_msg_id BIGINT,
    version BIGINT NOT NULL CHECK (version > 0),
    started_at BIGINT NOT NULL,
    queued_at BIGINT NOT NULL,
    assigned_at BIGINT,
    ended_at BIGINT,
    ended_by TEXT,
    rating SMALLINT CHECK (rating BETWEEN 1 AND 5),
    rating_content TEXT,
    rating_time BIGINT,
    noticed_at BIGINT,
    CHECK (status <> 0 OR admin_id IS NULL),
    CHECK (status <> 1 OR admin_id IS NOT NULL),
    CHECK ((status = 2) = (ended_at IS NOT NULL)),
    CHECK ((last_seq = 0) = (last_msg_id IS NULL)),
    CHECK ((rating IS NULL) = (rating_content IS NULL)),
    CHECK ((rating IS NULL) = (rating_time IS NULL))
);

-- S1: at most one open session of a user, whatever runs at once.
CREATE UNIQUE INDEX cg_chat_session_open ON cg_chat_session (user_id) WHERE status IN (0, 1);
-- Q1: the waiting line in its order.
CREATE INDEX cg_chat_session_line ON cg_chat_session (priority DESC, id) WHERE status = 0;
CREATE INDEX cg_chat_session_owned ON cg_chat_session (admin_id) WHERE status = 1;
CREATE INDEX cg_chat_session_user ON cg_chat_session (user_id, id);

CREATE TABLE cg_chat_message (
    msg_id BIGINT PRIMARY KEY,
    -- The name under which the integrator's SQL knows the key.
    id BIGINT GENERATED ALWAYS AS (msg_id) STORED,
    session_id BIGINT NOT NULL REFERENCES cg_chat_session (id),
    seq BIGINT NOT NULL CHECK (seq > 0),
    sender_type TEXT COLLATE "C" NOT NULL
        CHECK (sender_type IN ('user', 'agent', 'system', 'bot')),
    sender_id TEXT COLLATE "C" NOT NULL,
    client_msg_id TEXT COLLATE "C" NOT NULL,
    msg_type TEXT NOT NULL CHECK (msg_type IN ('text', 'image')),
    content TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'read', 'failed')),
    create_time BIGINT NOT NULL
);

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
    admin_id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL,
    avatar TEXT,
    availability TEXT NOT NULL CHECK (availability IN ('online', 'offline')),
    max_sessions BIGINT NOT NULL CHECK (max_sessions >= 0),
    active_sessions BIGINT NOT NULL CHECK (active_sessions >= 0),
    -- The decision record that last gave this agent a session.
    last_assigned BIGINT,
    live BOOLEAN NOT NULL,
    live_gen BIGINT NOT NULL,
    gone_since BIGINT
);

CREATE TABLE cg_chat_assignment (
    id BIGINT PRIMARY KEY,
    session_id BIGINT NOT NULL REFERENCES cg_chat_session (id),
    admin_id TEXT COLLATE "C",
    from_admin_id TEXT COLLATE "C",
    -- JSON array of {adminId, load, maxSessions}.
    candidates TEXT NOT NULL,
    rule TEXT NOT NULL CHECK (rule IN ('least_load', 'claim', 'named', 'none')),
    result TEXT NOT NULL CHECK (result IN ('assigned', 'transferred', 'requeued', 'ended')),
    reason TEXT NOT NULL
        CHECK (reason IN ('drain', 'claim', 'transfer', 'agent_gone', 'agent_offline', 'end')),
    actor TEXT NOT NULL,
    note TEXT,
    time BIGINT NOT NULL
);

CREATE INDEX cg_chat_assignment_session ON cg_chat_assignment (session_id, id);

CREATE TABLE cg_chat_outbox (
    id BIGINT PRIMARY KEY,
    event_type TEXT NOT NULL,
    schema_version INTEGER NOT NULL CHECK (schema_version > 0),
    time BIGINT NOT NULL,
    source TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    -- Events with the same key are handled in order.
    key TEXT NOT NULL,
    -- The event as JSON.
    payload TEXT NOT NULL,
    confirmed_at BIGINT
);

-- Both hold only what the relay and the trimmer look for (N2).
CREATE INDEX cg_chat_outbox_unconfirmed ON cg_chat_outbox (id) WHERE confirmed_at IS NULL;
CREATE INDEX cg_chat_outbox_confirmed
    ON cg_chat_outbox (confirmed_at) WHERE confirmed_at IS NOT NULL;

CREATE TABLE cg_chat_upload (
    path TEXT COLLATE "C" PRIMARY KEY,
    session_id BIGINT NOT NULL,
    -- user:<id> or agent:<id>
    uploader TEXT NOT NULL,
    mime TEXT NOT NULL CHECK (mime IN ('image/jpeg', 'image/png', 'image/gif')),
    size BIGINT NOT NULL CHECK (size > 0),
    sha256 BYTEA NOT NULL CHECK (length(sha256) = 32),
    width BIGINT NOT NULL CHECK (width > 0),
    height BIGINT NOT NULL CHECK (height > 0),
    created_at BIGINT NOT NULL
);

CREATE INDEX cg_chat_upload_created ON cg_chat_upload (created_at);

-- T3: snowflake worker ids and who holds them; 0 when embedded.
CREATE TABLE cg_worker (
    worker_id INTEGER PRIMARY KEY CHECK (worker_id BETWEEN 0 AND 1023),
    node TEXT NOT NULL,
    epoch BIGINT NOT NULL CHECK (epoch >= 0),
    expires_at BIGINT NOT NULL
);
