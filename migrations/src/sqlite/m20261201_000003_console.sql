-- What agents have among themselves.

-- B95: private notes are no messages. In a table of their own, no query for a visitor can select one.
CREATE TABLE cg_chat_note (
    note_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES cg_chat_session (id),
    admin_id TEXT NOT NULL,
    admin_name TEXT NOT NULL,
    -- The author's own key: repeating a note is harmless.
    client_msg_id TEXT,
    content TEXT NOT NULL CHECK (instr(content, char(0)) = 0),
    create_time INTEGER NOT NULL
) STRICT;

CREATE INDEX cg_chat_note_session ON cg_chat_note (session_id, note_id);
CREATE UNIQUE INDEX cg_chat_note_key
    ON cg_chat_note (session_id, admin_id, client_msg_id) WHERE client_msg_id IS NOT NULL;

-- Texts that are said often: an agent's own, or the team's.
CREATE TABLE cg_chat_canned (
    id INTEGER PRIMARY KEY,
    -- Whose; NULL for the team's.
    admin_id TEXT,
    shortcut TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL CHECK (instr(content, char(0)) = 0),
    update_time INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX cg_chat_canned_own
    ON cg_chat_canned (admin_id, shortcut) WHERE admin_id IS NOT NULL;
CREATE UNIQUE INDEX cg_chat_canned_team ON cg_chat_canned (shortcut) WHERE admin_id IS NULL;
