-- A1: every copy carries its row's version, so the rows that are copied have one.

ALTER TABLE cg_chat_agent ADD COLUMN version INTEGER NOT NULL DEFAULT 0 CHECK (version >= 0);

-- Who does what only one process should do at a time.
CREATE TABLE cg_lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- N4: what a node reads again that may have missed some.
CREATE INDEX cg_chat_outbox_changes ON cg_chat_outbox (id) WHERE event_type <> 'message_stored';
