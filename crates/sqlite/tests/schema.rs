//! What the tables themselves guarantee, seen by a program that is not kefu.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use kefu_sqlite::{SqliteOptions, SqliteStore};
use kefu_testkit::{World, build};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, Value};
use tempfile::TempDir;

struct Opened {
    world: World,
    /// A connection with none of kefu's settings, while kefu has the file open.
    other: DatabaseConnection,
    _store: SqliteStore,
    _folder: TempDir,
}

async fn opened() -> Opened {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kefu.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).await.unwrap();
    let other = Database::connect(format!("sqlite:{}", path.display())).await.unwrap();
    Opened { world: World::new(store.stores()), other, _store: store, _folder: folder }
}

async fn count(database: &DatabaseConnection, sql: &str, value: impl Into<Value>) -> i64 {
    let statement = Statement::from_sql_and_values(DbBackend::Sqlite, sql, [value.into()]);
    let row = database.query_one_raw(statement).await.unwrap().unwrap();
    row.try_get_by_index(0).unwrap()
}

/// The three statements of spec A, to the letter.
#[tokio::test]
async fn the_integrators_sql_runs_as_written() {
    let Opened { world, other, .. } = &opened().await;
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let batch: Vec<_> = ["one", "two", "three"]
        .iter()
        .map(|text| build::text(session.id, &sender, &format!("k-{text}"), text))
        .collect();
    let verdict = world.append(&batch).await.unwrap();
    let msg_id = verdict.messages[0].msg_id.get();
    let by_id = "SELECT COUNT(*) FROM cg_chat_message WHERE msg_id = ?";
    assert_eq!(count(other, by_id, msg_id).await, 1);
    let open = "SELECT COUNT(*) FROM cg_chat_session WHERE user_id = ? AND status IN (0,1)";
    assert_eq!(count(other, open, "u1").await, 1);
    let contents = "SELECT content FROM cg_chat_message WHERE session_id = ? ORDER BY id";
    let statement =
        Statement::from_sql_and_values(DbBackend::Sqlite, contents, [session.id.get().into()]);
    let rows = other.query_all_raw(statement).await.unwrap();
    let contents: Vec<String> = rows.iter().map(|row| row.try_get_by_index(0).unwrap()).collect();
    assert_eq!(contents, ["one", "two", "three"]);
}

#[tokio::test]
async fn impossible_rows_are_refused() {
    let Opened { world, other, .. } = &opened().await;
    let session = world.open("u1", 0).await;
    let id = session.id;
    let message = |values: &str| {
        format!(
            "INSERT INTO cg_chat_message (msg_id, session_id, seq, sender_type, sender_id, \
             client_msg_id, msg_type, content, status, create_time) VALUES ({values})"
        )
    };
    let good = format!("1, {id}, 1, 'user', 'u1', 'k', 'text', 'hi', 'pending', 0");
    other.execute_unprepared(&message(&good)).await.unwrap();
    let next = |sender: &str, kind: &str, content: &str, status: &str| {
        message(&format!("2, {id}, 2, '{sender}', 'u1', 'k2', '{kind}', {content}, '{status}', 0"))
    };
    let refused = [
        format!("UPDATE cg_chat_session SET status = 3 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET status = 1 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET admin_id = 'a1' WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET status = 2 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET rating = 6 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET user_id = NULL WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET balance = 'much' WHERE id = {id}"),
        message(&good.replace("1, ", "2, ")),
        message(&good.replacen("1, ", "2, ", 1).replace("'k'", "'k2'")),
        message(&format!("2, {id}, 2, 'user', 'u1', 'k', 'text', 'hi', 'pending', 0")),
        message("2, 99, 2, 'user', 'u1', 'k2', 'text', 'hi', 'pending', 0"),
        next("robot", "text", "'hi'", "pending"),
        next("user", "video", "'hi'", "pending"),
        next("user", "text", "'hi'", "sent"),
        next("user", "text", "'a' || char(0) || 'b'", "pending"),
        next("user", "text", "NULL", "pending"),
        "INSERT INTO cg_chat_agent VALUES ('a1', 'A', NULL, 'away', 1, 0, NULL, 0, 0, NULL)".into(),
        "INSERT INTO cg_chat_agent VALUES ('a1', 'A', NULL, 'online', 1, -1, NULL, 0, 0, NULL)"
            .into(),
        "INSERT INTO cg_worker VALUES (1024, 'n', 0, 0)".into(),
    ];
    for sql in refused {
        let answer = other.execute_unprepared(&sql).await;
        assert!(answer.is_err(), "{sql}");
    }
    other.execute_unprepared(&next("user", "text", "'hi'", "pending")).await.unwrap();
}

/// S1, whatever goes round the store.
#[tokio::test]
async fn a_second_open_session_is_refused() {
    let Opened { world, other, .. } = &opened().await;
    world.open("u1", 0).await;
    let second = "INSERT INTO cg_chat_session (id, user_id, user_name, status, source, priority, \
         last_seq, version, started_at, queued_at) VALUES (1, 'u1', 'A', 0, '', 0, 0, 1, 0, 0)";
    assert!(other.execute_unprepared(second).await.is_err());
    other.execute_unprepared(&second.replace("'u1'", "'u2'")).await.unwrap();
}

/// Every character that a message may hold, and what only looks like JSON or SQL, comes back as it was.
#[tokio::test]
async fn texts_survive_to_the_byte() {
    let Opened { world, .. } = &opened().await;
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let texts = [
        "客服 😀 \u{10FFFF} \u{FEFF}\u{2028}",
        "\"quoted\" \\u0041 \\n \\",
        "line\nbreak\ttab",
        "'; DROP TABLE cg_chat_message; --",
        "{\"a\": [1, null]}",
        "12345678901234567890",
        "null",
        "1e3",
    ];
    let batch: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| build::text(session.id, &sender, &format!("k{n}"), text))
        .collect();
    let verdict = world.append(&batch).await.unwrap();
    for (message, text) in verdict.messages.iter().zip(texts) {
        let stored = world.stores.messages.find(message.msg_id).await.unwrap().unwrap();
        assert_eq!(stored.content, text);
        assert_eq!(stored, **message);
    }
}

/// M1 keeps NUL out; if it came through all the same, the row is refused, not cut short (A4).
#[tokio::test]
async fn a_nul_is_refused_and_takes_its_batch_with_it() {
    let Opened { world, other, .. } = &opened().await;
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let batch = [
        build::text(session.id, &sender, "k1", "fine"),
        build::text(session.id, &sender, "k2", "a\0b"),
    ];
    let answer = world.append(&batch).await;
    assert!(matches!(answer, Err(kefu_core::StoreFault::Internal { .. })), "{answer:?}");
    let all = "SELECT COUNT(*) FROM cg_chat_message WHERE session_id = ?";
    assert_eq!(count(other, all, session.id.get()).await, 0);
    assert_eq!(world.append(&batch[..1]).await.unwrap().messages.len(), 1);
}
