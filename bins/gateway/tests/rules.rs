//! Rules of the wire that only show through real sockets: order of answers, refusals, who is told what.

mod support;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{Client, Server, ServerBuilder};

fn session_id(connected: &Value) -> String {
    connected["sessionId"].as_str().unwrap_or_default().to_owned()
}

fn text(session: &str, key: &str, content: &str) -> Value {
    json!({"sessionId": session, "msgType": "text", "content": content, "clientMsgId": key})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_sends_keep_their_order_whether_stored_or_refused() -> Result<()> {
    let server = ServerBuilder::default().set("KEFU__LIMITS__MESSAGE_BURST", 20).start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    let keys: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
    for (n, key) in keys.iter().enumerate() {
        let content = if n % 5 == 4 { String::new() } else { format!("text {n}") };
        user.send("chat.message.send", text(&session, key, &content)).await?;
    }
    let mut answered = Vec::new();
    let mut codes = Vec::new();
    while answered.len() < keys.len() {
        let frame = user.next().await?;
        let Some(key) = frame["payload"]["clientMsgId"].as_str() else { continue };
        answered.push(key.to_owned());
        codes.push(frame["payload"]["code"].as_str().unwrap_or("stored").to_owned());
        if frame["payload"]["code"] == "rate_limited" {
            ensure!(frame["payload"]["retryAfterMs"].as_u64() > Some(0), "L2: {frame}");
        }
    }
    ensure!(answered == keys, "M6: {answered:?}");
    for code in ["stored", "content_empty", "rate_limited"] {
        ensure!(codes.iter().any(|known| known == code), "{code} is among {codes:?}");
    }
    let first = codes.iter().position(|code| code == "rate_limited").unwrap_or_default();
    ensure!(codes[first..].iter().all(|code| code != "stored"), "M6: none overtakes it: {codes:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_eleventh_connection_is_told_when_to_come_back_and_closed_4005() -> Result<()> {
    let server = Server::start().await?;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(Client::visitor(&server, "user").await?);
    }
    let mut late = Client::open(&server).await?;
    let connect = json!({"token": server.user("user"), "source": "test"});
    let refusal = late.refused("chat.connect", connect).await?;
    ensure!(refusal["code"] == "rate_limited", "{refusal}");
    ensure!(refusal["retryAfterMs"].as_u64() > Some(0), "always with rate_limited: {refusal}");
    ensure!(late.gone().await?.code == Some(4005), "L2");
    open[0].0.call("chat.ping", json!({})).await?;
    Ok(())
}

/// Every event that names a session × who asks: `forbidden` is about the role, everything else about a
/// session one may not see is `not_found` (A3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_by_event_and_role() -> Result<()> {
    let server = Server::start().await?;
    let (mut owner, _) = Client::agent(&server, "owner", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    owner.expect("chat.session.new").await?;
    let asked = user.say(&session, "q", "hello").await?;
    let (mut stranger, _) = Client::visitor(&server, "stranger").await?;
    let (mut colleague, _) = Client::agent(&server, "colleague", 5).await?;
    let (mut supervisor, _) =
        Client::connect(&server, json!({"token": server.supervisor("boss")})).await?;

    let of_session = |event: &str, session: &str| match event {
        "chat.message.send" => text(session, "x", "x"),
        "chat.message.ack" => json!({"msgId": asked["msgId"]}),
        "chat.typing" => json!({"sessionId": session, "isTyping": true}),
        "chat.session.rate" => json!({"sessionId": session, "rating": 5, "content": ""}),
        "chat.session.transfer" => json!({"sessionId": session, "targetAdminId": "colleague"}),
        _ => json!({"sessionId": session}),
    };
    let table = [
        // event, stranger, colleague, supervisor
        ("chat.message.send", "not_found", "not_found", "forbidden"),
        ("chat.message.ack", "not_found", "not_found", "forbidden"),
        ("chat.typing", "not_found", "not_found", "forbidden"),
        ("chat.session.rate", "not_found", "forbidden", "forbidden"),
        ("chat.session.end", "not_found", "not_found", ""),
        ("chat.session.transfer", "forbidden", "not_found", ""),
        ("chat.session.claim", "forbidden", "conflict", "forbidden"),
        ("chat.history", "not_found", "not_found", ""),
    ];
    for (event, by_stranger, by_colleague, by_supervisor) in table {
        let cases = [
            (&mut stranger, by_stranger),
            (&mut colleague, by_colleague),
            (&mut supervisor, by_supervisor),
        ];
        for (client, code) in cases {
            if code.is_empty() {
                continue;
            }
            let refusal = client.refused(event, of_session(event, &session)).await?;
            ensure!(refusal["code"] == code, "{event}: {code} expected: {refusal}");
            ensure!(refusal["traceId"].is_string(), "{refusal}");
            if code == "not_found" && event != "chat.message.ack" {
                let nowhere = client.refused(event, of_session(event, "1")).await?;
                let same = nowhere["message"] == refusal["message"];
                ensure!(nowhere["code"] == code && same, "{event}: as if it did not exist");
            }
        }
    }
    for (event, payload) in
        [("chat.agent.online", json!({"maxSessions": 1})), ("chat.agent.offline", json!({}))]
    {
        ensure!(stranger.refused(event, payload.clone()).await?["code"] == "forbidden");
        ensure!(supervisor.refused(event, payload).await?["code"] == "forbidden");
    }
    for event in ["chat.queue.list", "chat.agent.list"] {
        ensure!(stranger.refused(event, json!({})).await?["code"] == "forbidden");
        supervisor.call(event, json!({})).await?;
    }
    let page =
        supervisor.call("chat.history", json!({"sessionId": session, "afterSeq": 0})).await?;
    ensure!(page["messages"][0]["content"] == "hello", "A3: supervisors read: {page}");
    let ended = supervisor.call("chat.session.end", json!({"sessionId": session})).await?;
    ensure!(ended["endedBy"].is_string(), "{ended}");
    ensure!(user.expect("chat.session.ended").await? == ended, "both are told the same");
    ensure!(owner.expect("chat.session.ended").await? == ended);
    owner.call("chat.history", json!({"sessionId": session, "afterSeq": 0})).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_who_lost_a_session_gets_nothing_more_of_it() -> Result<()> {
    let server = Server::start().await?;
    let (mut first, _) = Client::agent(&server, "anna", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    first.expect("chat.session.new").await?;
    let early = first.say(&session, "a1", "good day").await?;
    let (mut second, _) = Client::agent(&server, "bert", 5).await?;
    let transfer = json!({"sessionId": session, "targetAdminId": "bert"});
    first.call("chat.session.transfer", transfer).await?;
    first.expect("chat.session.removed").await?;
    second.expect("chat.session.new").await?;

    user.send("chat.typing", json!({"sessionId": session, "isTyping": true})).await?;
    user.say(&session, "u1", "are you there?").await?;
    user.send("chat.message.ack", json!({"msgId": early["msgId"]})).await?;
    second.expect("chat.typing").await?;
    second.expect_where("chat.message.new", |p| p["content"] == "are you there?").await?;
    let ack =
        second.expect_where("chat.message.peer_ack", |p| p["msgId"] == early["msgId"]).await?;
    ensure!(ack["status"] == "read", "the sender's side is who holds it now (M2): {ack}");
    let repeat = first.say(&session, "a1", "good day").await?;
    ensure!(repeat["duplicate"] == true, "T2: what it had stored keeps its answer");
    for event in ["chat.typing", "chat.message.new", "chat.message.peer_ack"] {
        first.expect_none(event).await?;
    }
    for (event, payload) in [
        ("chat.message.send", text(&session, "a2", "x")),
        ("chat.session.end", json!({"sessionId": session})),
        ("chat.typing", json!({"sessionId": session, "isTyping": true})),
        ("chat.session.transfer", json!({"sessionId": session, "targetAdminId": "anna"})),
    ] {
        let refusal = first.refused(event, payload).await?;
        ensure!(refusal["code"] == "not_found", "S4: {event}: {refusal}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typing_keeps_its_order() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    for n in 0..200 {
        let typing = json!({"sessionId": session, "isTyping": n % 2 == 0});
        user.send("chat.typing", typing).await?;
    }
    for n in 0..200 {
        let typing = agent.expect("chat.typing").await?;
        ensure!(typing["isTyping"] == (n % 2 == 0), "M6: the {n}th mark: {typing}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_end_answers_what_it_stored() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let builder = ServerBuilder::default()
        .set("KEFU__LIMITS__MESSAGE_BURST", 100_000)
        .set("KEFU__LIMITS__MESSAGES_PER_SECOND", 100_000);
    let server = builder.clone().start_in(folder.path().join("data")).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    let flood = async {
        let mut sent = 0;
        let key = |n| format!("k{n}");
        while sent < 3_000
            && user.send("chat.message.send", text(&session, &key(sent), "x")).await.is_ok()
        {
            sent += 1;
        }
        (sent, user.gone().await)
    };
    let (ended, (sent, gone)) = tokio::join!(server.terminate(), flood);
    ensure!(gone?.code == Some(1012), "L3");
    ensure!(ended?.1, "L3: all within the grace");
    let acks = user.inbox().filter(|frame| frame["event"] == "chat.message.server_ack");
    let acked = acks.filter_map(|ack| ack["payload"]["seq"].as_i64()).max().unwrap_or_default();

    let server = builder.start_in(folder.path().join("data")).await?;
    let (_, connected) = Client::visitor(&server, "user").await?;
    let stored = &connected["session"]["lastSeq"];
    ensure!(*stored == acked, "L3: {stored} stored, {acked} answered, {sent} sent");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connects_count_as_work_and_are_told_when_to_come_back() -> Result<()> {
    let server = ServerBuilder::default()
        .set("KEFU__LIMITS__IN_FLIGHT", 1)
        .set("KEFU__LIMITS__CONNECTS_PER_MINUTE", 1_000_000)
        .start()
        .await?;
    let connects = (0..30).map(|n| {
        let connect = json!({"token": server.user(&format!("u{n}")), "source": "test"});
        let server = &server;
        async move {
            let mut client = Client::open(server).await?;
            let mut refusals = 0;
            loop {
                let answer = client.ask("chat.connect", connect.clone()).await?;
                if answer["event"] == "chat.connected" {
                    return Ok(refusals);
                }
                ensure!(answer["payload"]["code"] == "overloaded", "L1: {answer}");
                ensure!(answer["payload"]["retryAfterMs"].as_u64() > Some(0), "L1: {answer}");
                refusals += 1;
            }
        }
    });
    let refusals: Vec<u32> = futures_util::future::try_join_all(connects).await?;
    ensure!(refusals.iter().sum::<u32>() > 0, "L1: one at a time, and the others are told");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unanswered_push_fails_and_a_late_receipt_still_counts() -> Result<()> {
    let server =
        ServerBuilder::default().set("KEFU__DELIVERY__RETRY_MS", "100,200,400").start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    let sent = user.say(&session, "k", "anybody?").await?;
    for attempt in 1..=4 {
        let pushed = agent.expect("chat.message.new").await?;
        ensure!(pushed["attempt"] == attempt && pushed["msgId"] == sent["msgId"], "M3: {pushed}");
    }
    let failed = user.expect("chat.message.peer_ack").await?;
    ensure!(failed["status"] == "failed" && failed["msgId"] == sent["msgId"], "M3: {failed}");
    let receipt = json!({"msgId": sent["msgId"], "status": "delivered"});
    agent.send("chat.message.ack", receipt.clone()).await?;
    let late = user.expect("chat.message.peer_ack").await?;
    ensure!(late["status"] == "delivered", "M3: nothing is lost: {late}");
    agent.send("chat.message.ack", json!({"msgId": sent["msgId"]})).await?;
    ensure!(user.expect("chat.message.peer_ack").await?["status"] == "read");
    agent.send("chat.message.ack", receipt).await?;
    agent.expect_none("chat.message.new").await?;
    user.expect_none("chat.message.peer_ack").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_who_goes_off_duty_with_requeue_gives_the_visitor_back() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    user.expect("chat.session.assigned").await?;
    let status = agent.call("chat.agent.offline", json!({"requeue": true})).await?;
    ensure!(status["status"] == "offline" && status["activeSessions"] == 0, "Z7: {status}");
    ensure!(agent.expect("chat.session.removed").await?["reason"] == "requeued");
    let requeued = user.expect("chat.session.requeued").await?;
    ensure!(requeued["sessionId"] == session.as_str(), "{requeued}");
    user.expect("chat.offline_notice").await?;
    let refusal = agent.refused("chat.session.claim", json!({"sessionId": session})).await?;
    ensure!(refusal["code"] == "agent_unavailable", "Z6: {refusal}");

    let (mut full, _) = Client::agent(&server, "full", 1).await?;
    full.expect("chat.session.new").await?;
    let (mut second, waiting) = Client::visitor(&server, "second").await?;
    let place = second.expect("chat.queue.position").await?;
    ensure!(place["position"] == 1 && place["total"] == 1, "Q2: online but full: {place}");
    let claim = json!({"sessionId": waiting["sessionId"]});
    let refusal = full.refused("chat.session.claim", claim).await?;
    ensure!(refusal["code"] == "agent_unavailable", "Z6: {refusal}");
    full.call("chat.agent.offline", json!({})).await?;
    second.expect("chat.offline_notice").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_are_checked_state_first_and_then_the_target() -> Result<()> {
    let server = Server::start().await?;
    let (mut owner, _) = Client::agent(&server, "owner", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    owner.expect("chat.session.new").await?;
    let (mut boss, _) =
        Client::connect(&server, json!({"token": server.supervisor("boss")})).await?;
    let to = |target: &str| json!({"sessionId": session, "targetAdminId": target});
    for (target, code) in [("owner", "bad_request"), ("nobody", "agent_unavailable")] {
        let refusal = owner.refused("chat.session.transfer", to(target)).await?;
        ensure!(refusal["code"] == code, "Z5: {refusal}");
    }
    let mut noted = to("nobody");
    noted["note"] = "x".repeat(501).into();
    let refusal = owner.refused("chat.session.transfer", noted).await?;
    ensure!(refusal["code"] == "content_too_long", "A4: {refusal}");
    owner.call("chat.agent.offline", json!({"requeue": true})).await?;
    let refusal = boss.refused("chat.session.transfer", to("nobody")).await?;
    ensure!(refusal["code"] == "conflict", "Z5: it waits: {refusal}");
    user.call("chat.session.end", json!({"sessionId": session})).await?;
    let refusal = boss.refused("chat.session.transfer", to("nobody")).await?;
    ensure!(refusal["code"] == "session_closed", "Z5: {refusal}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rating_is_kept_with_its_comment_and_a_later_one_replaces_it() -> Result<()> {
    let server = Server::start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    let rate = |rating: u8, content: &str| json!({"sessionId": session, "rating": rating, "content": content});
    user.call("chat.session.rate", rate(2, "slow")).await?;
    let ended = user.call("chat.session.end", json!({"sessionId": session})).await?;
    ensure!(ended["endedBy"] == "user", "{ended}");
    let rated = user.call("chat.session.rate", rate(5, "很好")).await?;
    ensure!(rated["rating"] == 5 && rated["content"] == "很好", "S3: {rated}");
    for (payload, code) in
        [(rate(6, ""), "bad_request"), (rate(1, &"x".repeat(501)), "content_too_long")]
    {
        let refusal = user.refused("chat.session.rate", payload).await?;
        ensure!(refusal["code"] == code, "A4: {refusal}");
    }
    let mut server = server.kill_and_restart().await?;
    let resume = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let (_, connected) = Client::connect(&server, resume).await?;
    ensure!(connected["sessionId"].is_null(), "S1: {connected}");
    ensure!(connected["session"]["rating"] == 5, "S3: {connected}");
    server.kill()?;
    let store = kefu_sqlite::SqliteStore::open(&server.database(), Default::default()).await?;
    let stored = store.stores().sessions.find(session.parse()?).await?;
    let rating = stored.and_then(|session| session.rating).context("stored")?;
    ensure!(rating.comment == "很好", "S3: {rating:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_of_sessions_an_agent_does_not_own_count_for_nothing() -> Result<()> {
    let server = Server::start().await?;
    let (mut owner, _) = Client::agent(&server, "owner", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    owner.expect("chat.session.new").await?;
    user.say(&session, "k1", "private").await?;
    let positions = json!({session.as_str(): 0, "7": 3});
    let foreign = json!({"token": server.agent("colleague"), "lastSeqs": positions});
    let (_, connected) = Client::connect(&server, foreign).await?;
    ensure!(
        connected["unread"] == json!([]) && connected["sessions"] == json!([]),
        "A3: {connected}"
    );
    let own = json!({"token": server.agent("owner"), "lastSeqs": {session.as_str(): 1, "7": 3}});
    let (_, connected) = Client::connect(&server, own).await?;
    ensure!(connected["unread"] == json!([]) && connected["hasMore"] == false, "M4: {connected}");
    ensure!(connected["sessions"][0]["unreadCount"] == 1, "not read yet: {connected}");
    Ok(())
}
