-- Past sessions, and what was said in them.

-- An agent's sessions, ended ones among them, the newest first.
CREATE INDEX cg_chat_session_agent ON cg_chat_session (admin_id, id) WHERE admin_id IS NOT NULL;

-- How far each session is in the index below. Every session has a row from its beginning, whoever makes it,
-- until it has ended and all of it is found: nothing can be forgotten in between.
CREATE TABLE cg_chat_indexed (
    session_id BIGINT PRIMARY KEY,
    upto BIGINT NOT NULL CHECK (upto >= 0),
    is_final BOOLEAN NOT NULL,
    indexed_at BIGINT NOT NULL
);

CREATE INDEX cg_chat_indexed_behind ON cg_chat_indexed (session_id) WHERE NOT is_final;

CREATE FUNCTION cg_chat_session_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cg_chat_indexed VALUES (NEW.id, 0, false, NEW.started_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER cg_chat_session_opened AFTER INSERT ON cg_chat_session
    FOR EACH ROW EXECUTE FUNCTION cg_chat_session_opened();

INSERT INTO cg_chat_indexed SELECT id, 0, false, 0 FROM cg_chat_session;

-- One row per hundred messages of a session. kefu cuts texts into words; no dictionary has a say.
CREATE TABLE cg_chat_term (
    session_id BIGINT NOT NULL,
    part BIGINT NOT NULL CHECK (part >= 0),
    words TSVECTOR NOT NULL,
    PRIMARY KEY (session_id, part)
);

CREATE INDEX cg_chat_term_index ON cg_chat_term USING GIN (words);
