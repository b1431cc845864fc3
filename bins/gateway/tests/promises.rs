//! What kefu promises about sessions, assignment and idempotency, through real sockets of the real
//! binary: numbers are those of the specification's properties (spec A, section 2).

mod support;

use anyhow::{Result, ensure};
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};
use support::{Client, Server, ServerBuilder};

fn session_id(connected: &Value) -> String {
    connected["sessionId"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_agents_and_a_hundred_users_at_once_get_ten_each() -> Result<()> {
    let server = Server::start().await?;
    let names: Vec<String> = (0..10).map(|n| format!("agent-{n}")).collect();
    let mut agents =
        try_join_all(names.iter().map(|name| Client::agent(&server, name, 10))).await?;
    let visitors: Vec<String> = (0..100).map(|n| format!("user-{n}")).collect();
    let mut users =
        try_join_all(visitors.iter().map(|name| Client::visitor(&server, name))).await?;
    for (user, connected) in &mut users {
        ensure!(connected["agentInfo"].is_null(), "S1: connected comes before any assignment");
        user.expect("chat.session.assigned").await?;
    }
    for (agent, _) in &mut agents {
        let status = agent.call("chat.agent.online", json!({"maxSessions": 10})).await?;
        ensure!(status["activeSessions"] == 10, "2.6 with CC-03 leaves exactly 10 each: {status}");
    }
    let (mut late, connected) = Client::visitor(&server, "user-101").await?;
    let place = late.expect("chat.queue.position").await?;
    ensure!(place["position"] == 1, "the 101st waits: {place}");
    let first = session_id(&users[0].1);
    users[0].0.call("chat.session.end", json!({"sessionId": first})).await?;
    let assigned = late.expect("chat.session.assigned").await?;
    ensure!(assigned["sessionId"] == session_id(&connected), "served when one ends (Z3)");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_line_is_served_by_balance_then_by_arrival() -> Result<()> {
    let server = Server::start().await?;
    let mut sessions = Vec::new();
    for (index, balance) in [100, 500, 200, 500, 300].into_iter().enumerate() {
        let name = format!("user-{index}");
        let (visitor, connected) = Client::rich_visitor(&server, &name, balance).await?;
        sessions.push((visitor, session_id(&connected)));
    }
    let (mut agent, _) = Client::agent(&server, "agent", 1).await?;
    let mut served = Vec::new();
    for _ in 0..5 {
        let offer = agent.expect("chat.session.new").await?;
        served.push(offer["userInfo"]["balance"].clone());
        let session = offer["sessionId"].clone();
        if served.len() == 1 {
            ensure!(session == sessions[1].1.as_str(), "of two with 500 the first (2.8)");
        }
        agent.call("chat.session.end", json!({"sessionId": session})).await?;
    }
    ensure!(served == [500, 500, 300, 200, 100], "2.8: {served:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_tasks_with_one_key_store_one_row() -> Result<()> {
    let server = ServerBuilder::default()
        .set("KEFU__LIMITS__CONNECTIONS_PER_PERSON", 20)
        .set("KEFU__LIMITS__MESSAGE_BURST", 1_000)
        .start()
        .await?;
    let (_keep, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    let sockets = try_join_all((0..10).map(|_| Client::visitor(&server, "user"))).await?;
    let tasks = sockets.into_iter().map(|(mut client, _)| {
        let session = session.clone();
        async move {
            let mut answers = Vec::new();
            for _ in 0..10 {
                answers.push(client.say(&session, "one-key", "the same text").await?);
            }
            anyhow::Ok(answers)
        }
    });
    let answers: Vec<Value> = try_join_all(tasks).await?.into_iter().flatten().collect();
    ensure!(answers.len() == 100);
    ensure!(answers.iter().all(|a| a["msgId"] == answers[0]["msgId"] && a["seq"] == 1), "2.1");
    ensure!(answers.iter().filter(|a| a["duplicate"] == false).count() == 1, "stored once (T2)");
    let (mut client, _) = Client::visitor(&server, "user").await?;
    let history = client.call("chat.history", json!({"sessionId": session, "afterSeq": 0})).await?;
    ensure!(history["messages"].as_array().map(Vec::len) == Some(1), "{history}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_connects_of_one_user_share_one_session() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 10).await?;
    let connects = join_all((0..10).map(|_| Client::visitor(&server, "user"))).await;
    let connects: Vec<_> = connects.into_iter().collect::<Result<_>>()?;
    let first = session_id(&connects[0].1);
    ensure!(connects.iter().all(|(_, connected)| session_id(connected) == first), "2.2, S1");
    agent.expect("chat.session.new").await?;
    agent.expect_none("chat.session.new").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_pipelined_messages_keep_their_order() -> Result<()> {
    let server = Server::start().await?;
    let mut client = Client::open(&server).await?;
    client.send("chat.connect", json!({"token": server.user("user"), "source": "test"})).await?;
    for n in 1..=100 {
        let payload =
            json!({"msgType": "text", "content": n.to_string(), "clientMsgId": format!("k{n}")});
        client.send("chat.message.send", payload).await?;
    }
    let connected = client.expect("chat.connected").await?;
    for n in 1..=100 {
        let ack = client.expect("chat.message.server_ack").await?;
        ensure!(ack["seq"] == n && ack["clientMsgId"] == format!("k{n}"), "M6: {ack}");
    }
    let session = session_id(&connected);
    let mut contents = Vec::new();
    for after in [0, 50] {
        let page =
            client.call("chat.history", json!({"sessionId": session, "afterSeq": after})).await?;
        for message in page["messages"].as_array().into_iter().flatten() {
            contents.push(message["content"].as_str().unwrap_or_default().to_owned());
        }
    }
    let expected: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
    ensure!(contents == expected, "2.4");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_from_question_to_rating() -> Result<()> {
    let server = Server::start().await?;
    let (mut first, _) = Client::agent(&server, "anna", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    user.expect("chat.session.assigned").await?;
    first.expect("chat.session.new").await?;

    let ack = user.say(&session, "q1", "hello").await?;
    let question = first.expect("chat.message.new").await?;
    ensure!(question["content"] == "hello" && question["msgId"] == ack["msgId"]);
    ensure!(question.get("clientMsgId").is_none(), "only the sender's own devices see the key");
    first
        .send("chat.message.ack", json!({"msgId": question["msgId"], "status": "delivered"}))
        .await?;
    ensure!(user.expect("chat.message.peer_ack").await?["status"] == "delivered");
    first.send("chat.message.ack", json!({"msgId": question["msgId"]})).await?;
    ensure!(user.expect("chat.message.peer_ack").await?["status"] == "read");

    first.send("chat.typing", json!({"sessionId": session, "isTyping": true})).await?;
    ensure!(user.expect("chat.typing").await?["isTyping"] == true);
    first.say(&session, "a1", "good day").await?;
    ensure!(user.expect("chat.typing").await?["isTyping"] == false, "a message ends it (P3)");
    ensure!(user.expect("chat.message.new").await?["content"] == "good day");

    let (mut second, _) = Client::agent(&server, "bert", 5).await?;
    let transfer = json!({"sessionId": session, "targetAdminId": "bert", "note": "knows refunds"});
    first.call("chat.session.transfer", transfer.clone()).await?;
    let offer = second.expect("chat.session.new").await?;
    ensure!(offer["note"] == "knows refunds" && offer["lastSeq"] == 2, "{offer}");
    let removed = first.expect("chat.session.removed").await?;
    ensure!(removed["reason"] == "transferred" && removed["targetAdminId"] == "bert");
    let assigned =
        user.expect_where("chat.session.assigned", |p| p["agentInfo"]["adminId"] == "bert").await?;
    ensure!(assigned["agentInfo"]["name"] == "bert name");
    first.call("chat.session.transfer", transfer).await?;
    let lost = first.refused("chat.history", json!({"sessionId": session, "afterSeq": 0})).await?;
    ensure!(lost["code"] == "not_found", "A3: an agent who lost a session gets nothing more");

    let ended = user.call("chat.session.end", json!({"sessionId": session})).await?;
    let again = user.call("chat.session.end", json!({"sessionId": session})).await?;
    ensure!(ended == again, "S4: the same answer");
    second.expect("chat.session.ended").await?;
    let late = user
        .refused(
            "chat.message.send",
            json!({"sessionId": session, "msgType": "text", "content": "x", "clientMsgId": "late"}),
        )
        .await?;
    ensure!(late["code"] == "session_closed" && late["clientMsgId"] == "late", "S2: {late}");
    let repeat = user.say(&session, "q1", "hello").await?;
    ensure!(repeat["duplicate"] == true && repeat["msgId"] == ack["msgId"], "T2, after the end");
    let rated = user
        .call("chat.session.rate", json!({"sessionId": session, "rating": 5, "content": "快"}))
        .await?;
    ensure!(rated["rating"] == 5);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_everything_and_resumes_above_the_position() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    for n in 1..=3 {
        user.say(&session, &format!("k{n}"), &format!("text {n}")).await?;
    }
    let server = server.kill_and_restart().await?;
    let resume = json!({
        "token": server.user("user"), "source": "test", "intent": "resume",
        "sessionId": session, "lastSeq": 1,
    });
    let (mut user, connected) = Client::connect(&server, resume).await?;
    let seqs: Vec<_> = connected["unread"].as_array().into_iter().flatten().collect();
    ensure!(seqs.len() == 2 && seqs[0]["seq"] == 2 && seqs[1]["seq"] == 3, "M4: {connected}");
    ensure!(connected["session"]["status"] == "active", "a reload keeps the session (Z7)");
    let (_, connected) = Client::connect(&server, json!({"token": server.agent("agent")})).await?;
    ensure!(connected["sessions"][0]["sessionId"] == session, "{connected}");
    ensure!(connected["sessions"][0]["unreadCount"] == 3);
    ensure!(connected["unread"].as_array().map(Vec::len) == Some(3), "unacked pushes resume");
    let repeat = user.say(&session, "k3", "text 3").await?;
    ensure!(repeat["duplicate"] == true && repeat["seq"] == 3, "T2 over a crash");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_online_means_leave_a_message() -> Result<()> {
    let server = Server::start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    ensure!(connected["session"]["agentsOnline"] == false);
    user.expect("chat.offline_notice").await?;
    for n in 1..=50 {
        let ack = user.say(&session, &format!("k{n}"), &format!("text {n}")).await?;
        ensure!(ack["status"] == "pending", "2.7: {ack}");
    }
    user.expect_none("chat.offline_notice").await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let offer = agent.expect("chat.session.new").await?;
    ensure!(offer["unread"] == 50, "{offer}");
    for n in 1..=50 {
        ensure!(agent.expect("chat.message.new").await?["seq"] == n);
    }
    Ok(())
}
