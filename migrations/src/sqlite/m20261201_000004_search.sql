-- Past sessions, and what was said in them.

-- An agent's sessions, ended ones among them, the newest first.
CREATE INDEX cg_chat_session_agent ON cg_chat_session (admin_id, id) WHERE admin_id IS NOT NULL;

-- How far each session is in the index below. Every session has a row from its beginning, whoever makes it,
-- until it has ended and all of it is found: nothing can be forgotten in between.
CREATE TABLE cg_chat_indexed (
    session_id INTEGER PRIMARY KEY,
    upto INTEGER NOT NULL CHECK (upto >= 0),
    is_final INTEGER NOT NULL CHECK (is_final IN (0, 1)),
    indexed_at INTEGER NOT NULL
) STRICT;

CREATE INDEX cg_chat_indexed_behind ON cg_chat_indexed (session_id) WHERE is_final = 0;

CREATE TRIGGER cg_chat_session_opened AFTER INSERT ON cg_chat_session
BEGIN
    INSERT INTO cg_chat_indexed VALUES (NEW.id, 0, 0, NEW.started_at);
END;

INSERT INTO cg_chat_indexed SELECT id, 0, 0, 0 FROM cg_chat_session;

-- One row per hundred messages of a session; its words are in the index, under the same number.
CREATE TABLE cg_chat_term (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    part INTEGER NOT NULL CHECK (part >= 0),
    UNIQUE (session_id, part)
) STRICT;

-- kefu cuts texts into words; `ascii` only parts them at spaces again.
CREATE VIRTUAL TABLE cg_chat_term_index USING fts5 (
    words, content = '', contentless_delete = 1, detail = 'none', tokenize = 'ascii'
);
