//! Who gets a session: caps, races for one session, drains, transfers.

use anyhow::{Result, ensure};
use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};

use crate::support::{Client, Server};
use crate::{after, of, session_id, to};

/// The load of each agent of a `chat.agent.list`.
fn loads(list: &Value) -> Vec<i64> {
    let agents = list["agents"].as_array().into_iter().flatten();
    agents.filter_map(|agent| agent["activeSessions"].as_i64()).collect()
}

async fn supervisor(server: &Server) -> Result<Client> {
    Ok(Client::connect(server, json!({"token": server.supervisor("boss")})).await?.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b11_no_path_takes_an_agent_over_the_cap() -> Result<()> {
    let server = Server::start().await?;
    let names = ["anna", "bert", "cleo"];
    let mut agents = try_join_all(names.iter().map(|name| Client::agent(&server, name, 3))).await?;
    let (mut boss, mut watcher) = (supervisor(&server).await?, supervisor(&server).await?);
    let users: Vec<String> = (0..20).map(|n| format!("user-{n}")).collect();
    let mut visitors =
        try_join_all(users.iter().map(|name| Client::visitor(&server, name))).await?;
    let sessions: Vec<String> = visitors.iter().map(|(_, c)| session_id(c)).collect();

    // Claims, transfers, ends and reopenings at once, each of which may be refused.
    let claims = agents.iter_mut().map(|(agent, _)| async {
        for session in &sessions {
            agent.ask("chat.session.claim", of(session)).await?;
        }
        anyhow::Ok(())
    });
    let transfers = async {
        for (session, target) in sessions.iter().zip(names.iter().cycle()) {
            boss.ask("chat.session.transfer", to(session, target)).await?;
        }
        anyhow::Ok(())
    };
    let reopenings = visitors.iter_mut().zip(&users).take(5).map(|((visitor, connected), name)| {
        let session = session_id(connected);
        let again = json!({"token": server.user(name), "source": "test"});
        async move {
            visitor.call("chat.session.end", of(&session)).await?;
            visitor.call("chat.connect", again).await
        }
    });
    let watch = async {
        let mut most = 0;
        for _ in 0..30 {
            let list = watcher.call("chat.agent.list", json!({})).await?;
            most = loads(&list).into_iter().fold(most, i64::max);
        }
        anyhow::Ok(most)
    };
    let (claimed, moved, reopened, most) =
        tokio::join!(join_all(claims), transfers, try_join_all(reopenings), watch);
    claimed.into_iter().collect::<Result<()>>()?;
    moved?;
    ensure!(reopened?.len() == 5);
    ensure!(most? <= 3, "CC-03: over the cap on the way");
    let settled = watcher
        .until("chat.agent.list", json!({}), |list| loads(list).iter().sum::<i64>() >= 9)
        .await?;
    ensure!(loads(&settled) == [3, 3, 3], "Z3: {settled}");
    for (agent, _) in &mut agents {
        let status = agent.call("chat.agent.online", json!({"maxSessions": 3})).await?;
        ensure!(status["activeSessions"] == 3, "{status}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b12_a_burst_of_a_hundred_is_spread_ten_each_and_the_next_waits() -> Result<()> {
    let server = Server::start().await?;
    let names: Vec<String> = (0..10).map(|n| format!("agent-{n}")).collect();
    let mut agents =
        try_join_all(names.iter().map(|name| Client::agent(&server, name, 10))).await?;
    let users: Vec<String> = (0..100).map(|n| format!("user-{n}")).collect();
    let mut visitors =
        try_join_all(users.iter().map(|name| Client::visitor(&server, name))).await?;
    for (visitor, _) in &mut visitors {
        visitor.expect("chat.session.assigned").await?;
    }
    let list = agents[0].0.call("chat.agent.list", json!({})).await?;
    ensure!(loads(&list) == [10; 10], "2.6, Z1: {list}");
    let (mut late, _) = Client::visitor(&server, "late").await?;
    ensure!(late.expect("chat.queue.position").await?["position"] == 1, "the 101st waits");
    Ok(())
}

/// Room and a waiting session exist together only for a moment: the drain is the third in the race.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b13_of_two_agents_who_claim_one_session_one_gets_it() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::agent(&server, "anna", 1).await?;
    let (mut bert, _) = Client::agent(&server, "bert", 1).await?;
    for round in 0..3 {
        let (_first, one) = Client::visitor(&server, &format!("one-{round}")).await?;
        let (_second, two) = Client::visitor(&server, &format!("two-{round}")).await?;
        let both = [session_id(&one), session_id(&two)];
        let is_of_round = |p: &Value| both.iter().any(|session| p["sessionId"] == session.as_str());
        let of_anna = anna.expect_where("chat.session.new", is_of_round).await?;
        let of_bert = bert.expect_where("chat.session.new", is_of_round).await?;
        let (mut wanted, connected) = Client::visitor(&server, &format!("wanted-{round}")).await?;
        let session = session_id(&connected);
        ensure!(wanted.expect("chat.queue.position").await?["position"] == 1);

        for (agent, own) in [(&mut anna, &of_anna), (&mut bert, &of_bert)] {
            agent.send("chat.session.end", json!({"sessionId": own["sessionId"]})).await?;
        }
        let answers = tokio::join!(
            anna.ask("chat.session.claim", of(&session)),
            bert.ask("chat.session.claim", of(&session)),
        );
        for answer in [answers.0?, answers.1?] {
            let code = answer["payload"]["code"].as_str();
            let known = matches!(code, None | Some("conflict" | "agent_unavailable"));
            ensure!(known, "Z6: {answer}");
        }
        wanted.expect("chat.session.assigned").await?;
        wanted.expect_none("chat.session.assigned").await?;
        let mut owners = 0;
        for name in ["anna", "bert"] {
            let (_, again) = Client::connect(&server, json!({"token": server.agent(name)})).await?;
            let open = again["sessions"].as_array().into_iter().flatten();
            owners += open.filter(|open| open["sessionId"] == session.as_str()).count();
        }
        ensure!(owners == 1, "one of them has it: {owners}");
        for agent in [&mut anna, &mut bert] {
            let list = agent.call("chat.queue.list", json!({})).await?;
            ensure!(list["total"] == 0, "it left both lists: {list}");
            let refusal = agent.refused("chat.session.claim", of(&session)).await?;
            ensure!(refusal["code"] == "conflict", "Z6: {refusal}");
        }
        wanted.call("chat.session.end", of(&session)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b19_whoever_waits_is_served_by_arrival_end_cap_and_online() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::agent(&server, "anna", 1).await?;
    let (mut first, one) = Client::visitor(&server, "first").await?;
    first.expect("chat.session.assigned").await?;
    let (mut second, _) = Client::visitor(&server, "second").await?;
    second.expect("chat.queue.position").await?;
    first.call("chat.session.end", of(&session_id(&one))).await?;
    second.expect("chat.session.assigned").await?;

    let (mut third, _) = Client::visitor(&server, "third").await?;
    third.expect("chat.queue.position").await?;
    anna.call("chat.agent.online", json!({"maxSessions": 2})).await?;
    third.expect("chat.session.assigned").await?;

    let (mut fourth, _) = Client::visitor(&server, "fourth").await?;
    fourth.expect("chat.queue.position").await?;
    let (_bert, _) = Client::agent(&server, "bert", 1).await?;
    let assigned = fourth.expect("chat.session.assigned").await?;
    ensure!(assigned["agentInfo"]["adminId"] == "bert", "Z3: {assigned}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b21_a_returning_visitor_is_not_tied_to_an_agent_who_left() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::agent(&server, "anna", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    user.expect("chat.session.assigned").await?;
    user.call("chat.session.end", of(&session_id(&connected))).await?;
    anna.call("chat.agent.offline", json!({})).await?;
    let (mut bert, _) = Client::agent(&server, "bert", 5).await?;

    let again = json!({"token": server.user("user"), "source": "test"});
    let connected = user.call("chat.connect", again).await?;
    ensure!(connected["session"]["agentsOnline"] == true, "{connected}");
    let assigned = user.expect("chat.session.assigned").await?;
    ensure!(assigned["agentInfo"]["adminId"] == "bert", "{assigned}");
    bert.expect("chat.session.new").await?;
    user.expect_none("chat.offline_notice").await?;
    Ok(())
}

/// kefu has no groups of agents; every agent is of every group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b26_a_transfer_shows_at_once_at_both_consoles() -> Result<()> {
    let server = Server::start().await?;
    let (mut anna, _) = Client::agent(&server, "anna", 5).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    anna.expect("chat.session.new").await?;
    user.say(&session, "k1", "a refund, please").await?;
    let (mut bert, _) = Client::agent(&server, "bert", 5).await?;
    anna.call("chat.session.transfer", to(&session, "bert")).await?;
    let offer = bert.expect("chat.session.new").await?;
    let removed = anna.expect("chat.session.removed").await?;
    ensure!(offer["sessionId"] == session.as_str() && offer["lastSeq"] == 1, "Z5: {offer}");
    ensure!(removed["reason"] == "transferred" && removed["targetAdminId"] == "bert", "{removed}");
    let page = bert.call("chat.history", after(&session, 0)).await?;
    ensure!(page["messages"][0]["content"] == "a refund, please", "with its history: {page}");
    Ok(())
}
