//! 10 agents, 100 users at once, three gateways: 10 each (2.6 with CC-03), round after round; and the
//! specification's own SQL of 2.1, 2.2, 2.4 and 2.7, as written.
//!
//! `cargo xtask show spread` sets `KEFU_SPREAD_ROUNDS=50`.

use anyhow::{Result, ensure};
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};

use crate::copies::{caps_hold, rows_hold, until_exact};
use crate::session_id;
use crate::support::{Client, ClusterHouse, HouseBuilder, Server, setting};

const AGENTS: usize = 10;
const USERS: usize = 100;

fn gateway(house: &ClusterHouse, number: usize) -> &Server {
    &house.gateways[number % house.gateways.len()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_agents_get_ten_each_of_a_hundred_through_three_gateways() -> Result<()> {
    let rounds = setting("KEFU_SPREAD_ROUNDS", 2);
    let house = HouseBuilder::of(3, 2).without_limits().start().await?;
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent-{n}")).collect();
    let agents = names.iter().enumerate().map(|(n, name)| {
        let server = gateway(&house, n);
        async move { Client::agent(server, name, 10).await }
    });
    let mut agents = try_join_all(agents).await?;
    for round in 0..rounds {
        let users = join_all((0..USERS).map(|n| {
            let (server, name) = (gateway(&house, n), format!("user-{n}"));
            async move { Client::visitor(server, &name).await }
        }));
        let mut users: Vec<(Client, Value)> = users.await.into_iter().collect::<Result<_>>()?;
        for (user, _) in &mut users {
            user.expect("chat.session.assigned").await?;
        }
        for (agent, _) in &mut agents {
            let status = agent.call("chat.agent.online", json!({"maxSessions": 10})).await?;
            ensure!(status["activeSessions"] == 10, "round {round}: {status}");
        }
        let loads = "SELECT count(*) FROM cg_chat_agent WHERE active_sessions = 10";
        ensure!(house.count(loads)? == AGENTS as u64, "round {round}: 10 each");
        rows_hold(&house)?;
        caps_hold(&house)?;
        let ends = users.iter_mut().map(|(user, connected)| async move {
            let session = session_id(connected)?;
            user.call("chat.session.end", json!({"sessionId": session})).await
        });
        try_join_all(ends).await?;
        rows_hold(&house)?;
    }
    let never = "SELECT count(*) FROM (SELECT session_id FROM cg_chat_assignment \
                 WHERE result = 'assigned' GROUP BY session_id HAVING count(*) > 1) AS two";
    ensure!(house.count(never)? == 0, "a session with two owners");
    until_exact(&house).await?;
    println!("spread: {rounds} rounds of 10 agents x 100 users over 3 gateways: 10 each");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_specifications_sql_holds_as_written() -> Result<()> {
    let house = HouseBuilder::of(3, 1)
        .without_limits()
        .set("KEFU__LIMITS__CONNECTIONS_PER_PERSON", 100)
        .start()
        .await?;
    // 2.2: ten requests for one user at once.
    let connects = (0..10).map(|n| Client::visitor(gateway(&house, n), "user"));
    let mut sockets = try_join_all(connects).await?;
    let session = session_id(&sockets[0].1)?;
    let open = "SELECT COUNT(*) FROM cg_chat_session WHERE user_id = 'user' AND status IN (0,1)";
    ensure!(house.count(open)? == 1, "2.2");

    // 2.7: fifty messages while nobody is online, one key over all gateways at once among them (2.1).
    let same = sockets.iter_mut().map(|(client, _)| client.say(&session, "k1", "1"));
    let answers = try_join_all(same).await?;
    ensure!(answers.iter().all(|answer| answer["msgId"] == answers[0]["msgId"]), "2.1");
    let id = answers[0]["msgId"].as_str().unwrap_or_default();
    let stored = format!("SELECT COUNT(*) FROM cg_chat_message WHERE msg_id = {id}");
    ensure!(house.count(&stored)? == 1, "2.1");
    for n in 2..=50 {
        let (client, _) = &mut sockets[n % 10];
        client.say(&session, &format!("k{n}"), &n.to_string()).await?;
    }
    let pending = "SELECT COUNT(*) FROM cg_chat_message WHERE status = 'pending'";
    ensure!(house.count(pending)? == 50, "2.7");
    ensure!(house.count("SELECT COUNT(*) FROM cg_chat_message")? == 50, "2.7");

    // 2.4: a hundred in all, the other fifty in one go on one socket.
    let (client, _) = &mut sockets[0];
    for n in 51..=100 {
        let payload = json!({
            "sessionId": session, "msgType": "text", "content": n.to_string(),
            "clientMsgId": format!("k{n}"),
        });
        client.send("chat.message.send", payload).await?;
    }
    client.expect_where("chat.message.server_ack", |ack| ack["clientMsgId"] == "k100").await?;
    let order =
        format!("SELECT content FROM cg_chat_message WHERE session_id = {session} ORDER BY id");
    let contents: Vec<String> = house.rows(&order).concat();
    let expected: Vec<String> = (1..=100).map(|n| n.to_string()).collect();
    ensure!(contents == expected, "2.4: {contents:?}");
    Ok(())
}
