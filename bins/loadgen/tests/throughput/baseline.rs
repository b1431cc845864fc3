//! What kefu is measured against, on the same servers: D2, D3 and D8 of `quality.md`.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use kefu_postgres::PgStore;
use kefu_testkit::server::postgres::PostgresServer;
use kefu_testkit::server::redis::RedisServer;
use loadgen::Times;
use sea_orm::sqlx::{self, PgPool, Row, postgres::PgPoolOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Clients of the literal design, each with a conversation of its own, as its pool would have.
const CLIENTS: u32 = 16;

/// Clients of the raw insert, its rows a statement, and room for the ids of each client.
const RAW_CLIENTS: u32 = 2;
const RAW_BATCH: i64 = 64;
const RAW_SPAN: i64 = 100_000_000;
const RAW_SESSION: &str = "INSERT INTO cg_chat_session \
    (id, user_id, user_name, status, source, priority, last_seq, version, started_at, queued_at) \
    VALUES ($1, 'u' || $1, 'u', 0, 'raw', 0, 0, 1, 0, 0)";
const RAW_INSERT: &str = "INSERT INTO cg_chat_message (msg_id, session_id, seq, sender_type, \
        sender_id, client_msg_id, msg_type, content, status, create_time) \
    SELECT id, $2, id - $2, 'user', 'u', 'k' || id, 'text', \
        'a message of the usual length, about sixty characters long', 'pending', 0 \
    FROM UNNEST($1::bigint[]) AS n(id)";

/// The tables of spec B.
const TABLES: &str = "
    CREATE TABLE agents (id BIGSERIAL PRIMARY KEY, online BOOLEAN NOT NULL DEFAULT FALSE,
        max_conversations INT NOT NULL);
    CREATE TABLE conversations (id BIGSERIAL PRIMARY KEY, visitor_id TEXT NOT NULL,
        status TEXT NOT NULL, assigned_agent_id BIGINT REFERENCES agents (id),
        last_message_seq BIGINT NOT NULL DEFAULT 0,
        created_at TIMESTAMPTZ NOT NULL DEFAULT now(), updated_at TIMESTAMPTZ NOT NULL DEFAULT now());
    CREATE TABLE messages (id BIGSERIAL PRIMARY KEY,
        conversation_id BIGINT NOT NULL REFERENCES conversations (id), seq BIGINT NOT NULL,
        sender_type TEXT NOT NULL, sender_id TEXT NOT NULL, client_message_id TEXT NOT NULL,
        body TEXT NOT NULL, created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        UNIQUE (conversation_id, seq), UNIQUE (conversation_id, client_message_id));
    CREATE INDEX messages_history_idx ON messages (conversation_id, seq);
    CREATE TABLE single (id BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)";

/// Messages stored in a time.
pub(crate) struct Rate {
    pub(crate) stored: u64,
    span: Duration,
}

impl Rate {
    pub(crate) fn per_second(&self) -> f64 {
        self.stored as f64 / self.span.as_secs_f64()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} messages/s", self.per_second())
    }
}

/// Times in a form to read.
pub(crate) struct Shown(Times);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / 1_000.0;
        write!(f, "p50 {:.2} ms, p99 {:.2} ms", at(0.5), at(0.99))
    }
}

fn times() -> Result<Times> {
    Ok(Times::new_with_bounds(1, 60_000_000, 3)?)
}

async fn pool(server: &PostgresServer) -> Result<PgPool> {
    let exists =
        server.query("postgres", "SELECT count(*) FROM pg_database WHERE datname = 'literal'");
    let is_new = exists.trim() == "0";
    if is_new {
        server.query("postgres", "CREATE DATABASE literal");
    }
    let options = PgPoolOptions::new().max_connections(CLIENTS);
    let pool = options.connect(&server.url("literal")).await?;
    if is_new {
        sqlx::raw_sql(TABLES).execute(&pool).await?;
    }
    Ok(pool)
}

/// D2: one row, one commit, one client.
pub(crate) async fn single_commit(server: &PostgresServer, span: Duration) -> Result<Shown> {
    let (pool, mut took) = (pool(server).await?, times()?);
    let until = Instant::now() + span;
    while Instant::now() < until {
        let begun = Instant::now();
        sqlx::query("INSERT INTO single (body) VALUES ($1)")
            .bind("a message of the usual length, about sixty characters long")
            .execute(&pool)
            .await?;
        took.saturating_record(u64::try_from(begun.elapsed().as_micros())?.max(1));
    }
    pool.close().await;
    Ok(Shown(took))
}

/// D8: spec B to the letter: a transaction per message that locks the conversation, looks for the key,
/// inserts, and moves the sequence on.
pub(crate) async fn literal_design(server: &PostgresServer, span: Duration) -> Result<Rate> {
    let pool = pool(server).await?;
    let until = Instant::now() + span;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let pool = pool.clone();
        clients.spawn(async move {
            let row = sqlx::query(
                "INSERT INTO conversations (visitor_id, status) VALUES ($1, 'assigned') RETURNING id",
            )
            .bind(format!("v{client}"))
            .fetch_one(&pool)
            .await?;
            let conversation: i64 = row.get(0);
            let mut stored = 0_u64;
            while Instant::now() < until {
                store_message(&pool, conversation, &format!("k{stored}")).await?;
                stored += 1;
            }
            anyhow::Ok(stored)
        });
    }
    let mut stored = 0;
    while let Some(client) = clients.join_next().await {
        stored += client??;
    }
    pool.close().await;
    Ok(Rate { stored, span })
}

/// D1: rows of kefu's own message table, 64 in a statement, as fast as two clients can.
pub(crate) async fn raw_batches(server: &PostgresServer, span: Duration) -> Result<Rate> {
    let exists = server.query("postgres", "SELECT count(*) FROM pg_database WHERE datname = 'raw'");
    if exists.trim() == "0" {
        server.query("postgres", "CREATE DATABASE raw");
        PgStore::migrate(&server.url("raw")).await?;
    }
    let pool =
        PgPoolOptions::new().max_connections(RAW_CLIENTS).connect(&server.url("raw")).await?;
    let first: i64 = sqlx::query_scalar("SELECT COALESCE(MAX(msg_id), 0) FROM cg_chat_message")
        .fetch_one(&pool)
        .await?;
    let until = Instant::now() + span;
    let mut clients = JoinSet::new();
    for client in 0..RAW_CLIENTS {
        let (pool, first) = (pool.clone(), first + 1 + i64::from(client) * RAW_SPAN);
        clients.spawn(async move {
            sqlx::query(RAW_SESSION).bind(first).execute(&pool).await?;
            let mut stored = 0;
            while Instant::now() < until {
                let ids: Vec<_> = (0..RAW_BATCH).map(|n| first + 1 + stored + n).collect();
                sqlx::query(RAW_INSERT).bind(&ids).bind(first).execute(&pool).await?;
                stored += RAW_BATCH;
            }
            anyhow::Ok(stored)
        });
    }
    let mut stored = 0;
    while let Some(client) = clients.join_next().await {
        stored += client??.unsigned_abs();
    }
    pool.close().await;
    Ok(Rate { stored, span })
}

async fn store_message(pool: &PgPool, conversation: i64, key: &str) -> Result<()> {
    let mut transaction = pool.begin().await?;
    let row = sqlx::query(
        "SELECT id, status, assigned_agent_id, last_message_seq FROM conversations \
         WHERE id = $1 FOR UPDATE",
    )
    .bind(conversation)
    .fetch_one(&mut *transaction)
    .await?;
    let existing = sqlx::query(
        "SELECT id, conversation_id, seq, sender_type, sender_id, client_message_id, body, \
                created_at::text FROM messages \
         WHERE conversation_id = $1 AND client_message_id = $2",
    )
    .bind(conversation)
    .bind(key)
    .fetch_optional(&mut *transaction)
    .await?;
    if existing.is_none() {
        let seq: i64 = row.get::<i64, _>("last_message_seq") + 1;
        sqlx::query(
            "INSERT INTO messages (conversation_id, seq, sender_type, sender_id, \
                client_message_id, body) VALUES ($1, $2, 'visitor', 'v', $3, $4) \
             RETURNING id, conversation_id, seq",
        )
        .bind(conversation)
        .bind(seq)
        .bind(key)
        .bind("a message of the usual length, about sixty characters long")
        .fetch_one(&mut *transaction)
        .await?;
        sqlx::query(
            "UPDATE conversations SET last_message_seq = $2, updated_at = now() WHERE id = $1",
        )
        .bind(conversation)
        .bind(seq)
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// D3: from `PUBLISH` to the subscriber's line, one at a time, on plain sockets.
pub(crate) async fn publish_to_subscriber(server: &RedisServer, span: Duration) -> Result<Shown> {
    let url = server.url();
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let mut subscriber = BufReader::new(TcpStream::connect(address).await?);
    let mut publisher = TcpStream::connect(address).await?;
    publisher.set_nodelay(true)?;
    subscriber.get_mut().write_all(b"SUBSCRIBE baseline\r\n").await?;
    // *3, $9, subscribe, $8, baseline, :1
    read_lines(&mut subscriber, 6).await?;
    let (mut took, mut reply) = (times()?, [0; 64]);
    let until = Instant::now() + span;
    while Instant::now() < until {
        let begun = Instant::now();
        publisher
            .write_all(b"PUBLISH baseline 0123456789012345678901234567890123456789\r\n")
            .await?;
        // *3, $7, message, $8, baseline, $40, the text
        read_lines(&mut subscriber, 7).await?;
        took.saturating_record(u64::try_from(begun.elapsed().as_micros())?.max(1));
        let read = publisher.read(&mut reply).await?;
        reply.get(..read).filter(|reply| reply.first() == Some(&b':')).context("a number")?;
    }
    Ok(Shown(took))
}

async fn read_lines(from: &mut BufReader<TcpStream>, count: u32) -> Result<()> {
    let mut line = Vec::new();
    for _ in 0..count {
        line.clear();
        from.read_until(b'\n', &mut line).await?;
    }
    Ok(())
}
