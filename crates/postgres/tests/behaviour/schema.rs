//! What the tables themselves guarantee, seen by a program that is not kefu.

use kefu_core::StoreFault;
use kefu_testkit::build;

use crate::Fixture;

/// The three statements of spec A, to the letter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_integrators_sql_runs_as_written() {
    let Fixture { world, database, .. } = &Fixture::start().await;
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let batch: Vec<_> = ["one", "two", "three"]
        .iter()
        .map(|text| build::text(session.id, &sender, &format!("k-{text}"), text))
        .collect();
    let verdict = world.append(&batch).await.unwrap();
    let msg_id = verdict.messages[0].msg_id.to_string();
    let run = |sql: &str, value: &str| database.query(&sql.replace('?', value));
    assert_eq!(run("SELECT COUNT(*) FROM cg_chat_message WHERE msg_id = ?", &msg_id), "1");
    let open = "SELECT COUNT(*) FROM cg_chat_session WHERE user_id = ? AND status IN (0,1)";
    assert_eq!(run(open, "'u1'"), "1");
    let contents = "SELECT content FROM cg_chat_message WHERE session_id = ? ORDER BY id";
    assert_eq!(run(contents, &session.id.to_string()), "one\ntwo\nthree");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn impossible_rows_are_refused() {
    let Fixture { world, database, .. } = &Fixture::start().await;
    let id = world.open("u1", 0).await.id;
    let message = |values: &str| {
        format!(
            "INSERT INTO cg_chat_message (msg_id, session_id, seq, sender_type, sender_id, \
             client_msg_id, msg_type, content, status, create_time) VALUES ({values})"
        )
    };
    let good = format!("1, {id}, 1, 'user', 'u1', 'k', 'text', 'hi', 'pending', 0");
    database.query(&message(&good));
    let next = |sender: &str, kind: &str, content: &str, status: &str| {
        message(&format!("2, {id}, 2, '{sender}', 'u1', 'k2', '{kind}', {content}, '{status}', 0"))
    };
    let agent = |values: &str| format!("INSERT INTO cg_chat_agent VALUES ('a1', 'A', {values})");
    let refused = [
        format!("UPDATE cg_chat_session SET status = 3 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET status = 1 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET admin_id = 'a1' WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET status = 2 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET rating = 6 WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET user_id = NULL WHERE id = {id}"),
        format!("UPDATE cg_chat_session SET balance = 'much' WHERE id = {id}"),
        message(&good.replacen("1, ", "2, ", 1).replace("'k'", "'k2'")),
        message(&format!("2, {id}, 2, 'user', 'u1', 'k', 'text', 'hi', 'pending', 0")),
        message("2, 99, 2, 'user', 'u1', 'k2', 'text', 'hi', 'pending', 0"),
        next("robot", "text", "'hi'", "pending"),
        next("user", "video", "'hi'", "pending"),
        next("user", "text", "'hi'", "sent"),
        next("user", "text", "NULL", "pending"),
        agent("NULL, 'away', 1, 0, NULL, false, 0, NULL"),
        agent("NULL, 'online', 1, -1, NULL, false, 0, NULL"),
        "INSERT INTO cg_worker VALUES (1024, 'n', 0, 0)".into(),
        "INSERT INTO cg_lease VALUES ('x', 'n', 0, 0)".into(),
    ];
    for sql in refused {
        let answer = database.try_query(&sql);
        assert!(answer.is_err(), "{sql}");
    }
    database.query(&next("user", "text", "'hi'", "pending"));
    database.query(&agent("NULL, 'online', 1, 0, NULL, false, 0, NULL"));
}

/// S1, whatever goes round the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_open_session_is_refused() {
    let Fixture { world, database, .. } = &Fixture::start().await;
    world.open("u1", 0).await;
    let second = "INSERT INTO cg_chat_session (id, user_id, user_name, status, source, priority, \
         last_seq, version, started_at, queued_at) VALUES (1, 'u1', 'A', 0, '', 0, 0, 1, 0, 0)";
    assert!(database.try_query(second).is_err());
    database.query(&second.replace("'u1'", "'u2'"));
}

/// Every character that a message may hold, and what only looks like SQL, comes back as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_survive_to_the_byte() {
    let Fixture { world, .. } = &Fixture::start().await;
    let session = world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let texts = [
        "客服 😀 \u{10FFFF} \u{FEFF}\u{2028}",
        "\"quoted\" \\u0041 \\n \\",
        "line\nbreak\ttab",
        "'; DROP TABLE cg_chat_message; --",
        "{\"a\", NULL}",
        "{}",
        "null",
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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_is_refused_and_takes_its_batch_with_it() {
    let fixture = Fixture::start().await;
    let session = fixture.world.open("u1", 0).await;
    let sender = build::from_user(&session.user.user_id);
    let batch = [
        build::text(session.id, &sender, "k1", "fine"),
        build::text(session.id, &sender, "k2", "a\0b"),
    ];
    let answer = fixture.world.append(&batch).await;
    assert!(matches!(answer, Err(StoreFault::Internal { .. })), "{answer:?}");
    assert_eq!(fixture.messages(), 0);
    assert_eq!(fixture.world.append(&batch[..1]).await.unwrap().messages.len(), 1);
}

/// Ids are ordered byte by byte, whatever the database's own collation is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_ordered_by_their_bytes() {
    let Fixture { database, .. } = &Fixture::start().await;
    let columns = "SELECT count(*) FROM information_schema.columns \
         WHERE table_name LIKE 'cg_%' AND collation_name = 'C' \
           AND column_name IN ('user_id', 'admin_id', 'sender_id', 'client_msg_id', 'path')";
    assert_eq!(database.query(columns), "10");
}

/// Searching reads the index of words, not the words of all sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_uses_its_index() {
    let Fixture { database, .. } = &Fixture::start().await;
    // With so few rows reading them all would be cheaper: what is asked is whether the index can be used.
    let plan = database.query(
        "SET enable_seqscan = off; EXPLAIN SELECT s.* FROM cg_chat_session AS s WHERE s.id < 9 \
         AND s.id IN (SELECT t.session_id FROM cg_chat_term AS t \
         WHERE t.words @@ CAST('退款 & refu:*' AS tsquery)) ORDER BY s.id DESC LIMIT 51",
    );
    assert!(plan.contains("cg_chat_term_index"), "{plan}");
}
