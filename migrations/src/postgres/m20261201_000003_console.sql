-- What agents have among themselves.

-- B95: private notes are no messages. In a table of their own, no query for a visitor can select one.
CREATE TABLE cg_chat_note (
    note_id BIGINT PRIMARY KEY,
    session_id BIGINT NOT NULL REFERENCES cg_chat_session (id),
    admin_id TEXT COLLATE "C" NOT NULL,
    admin_name TEXT NOT NULL,
    -- The author's own key: repeating a note is harmless.
    client_msg_id TEXT COLLATE "C",
    content TEXT NOT NULL,
    create_time BIGINT NOT NULL
);

CREATE INDEX cg_chat_note_session ON cg_chat_note (session_id, note_id);
CREATE UNIQUE INDEX cg_chat_note_key
    ON cg_chat_note (session_id, admin_id, client_msg_id) WHERE client_msg_id IS NOT NULL;

-- Texts that are said often: an agent's own, or the team's.
CREATE TABLE cg_chat_canned (
    id BIGINT PRIMARY KEY,
    -- Whose; NULL for the team's.
    admin_id TEXT COLLATE "C",
    shortcut TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    update_time BIGINT NOT NULL
);

CREATE UNIQUE INDEX cg_chat_canned_own
    ON cg_chat_canned (admin_id, shortcut) WHERE admin_id IS NOT NULL;
CREATE UNIQUE INDEX cg_chat_canned_team ON cg_chat_canned (shortcut) WHERE admin_id IS NULL;
