-- A1: every copy carries its row's version, so the rows that are copied have one.

ALTER TABLE cg_chat_agent ADD COLUMN version INTEGER NOT NULL DEFAULT 0 CHECK (version >= 0);
