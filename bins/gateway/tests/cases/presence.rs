//! Who is there: tabs, reloads, peers that vanish without a word, and typing that must not outlive them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use crate::link::Link;
use crate::support::{Client, PATIENCE, Server, ServerBuilder};
use crate::{of, session_id};

/// A server that notices silence after `ttl_ms`.
fn attentive(ttl_ms: u64) -> ServerBuilder {
    ServerBuilder::default()
        .set("KEFU__PRESENCE__HEARTBEAT_MS", ttl_ms / 3)
        .set("KEFU__PRESENCE__TTL_MS", ttl_ms)
}

/// Whether a `chat.agent.list` shows this agent as somebody to transfer to.
fn is_online(list: &Value, agent: &str) -> bool {
    let mut rows = list["agents"].as_array().into_iter().flatten();
    rows.any(|row| row["adminId"] == agent && row["status"] == "online")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b37_an_agent_who_vanishes_without_a_word_goes_offline_and_gives_sessions_back()
-> Result<()> {
    let server = attentive(1_500).set("KEFU__PRESENCE__AGENT_GRACE_MS", 300).start().await?;
    let link = Link::to(&server).await?;
    let mut agent = Client::open_at(link.address).await?;
    agent.call("chat.connect", json!({"token": server.agent("agent")})).await?;
    agent.call("chat.agent.online", json!({"maxSessions": 5})).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    user.expect("chat.session.assigned").await?;
    link.stall();
    let requeued = user.expect_alive("chat.session.requeued", |_| true).await?;
    ensure!(requeued["sessionId"] == connected["sessionId"], "Z7: {requeued}");
    user.expect_alive("chat.offline_notice", |_| true).await?;
    let (mut boss, _) =
        Client::connect(&server, json!({"token": server.supervisor("boss")})).await?;
    ensure!(!is_online(&boss.call("chat.agent.list", json!({})).await?, "agent"), "P1");
    let (mut agent, connected) =
        Client::connect(&server, json!({"token": server.agent("agent")})).await?;
    ensure!(connected["sessions"] == json!([]), "Z7: {connected}");
    let status = agent.expect("chat.agent.status").await?;
    ensure!(status["status"] == "offline" && status["activeSessions"] == 0, "Z7: {status}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b38_one_of_two_tabs_closes_and_the_other_goes_on() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (second_console, _) =
        Client::connect(&server, json!({"token": server.agent("agent")})).await?;
    let (first_tab, connected) = Client::visitor(&server, "user").await?;
    let (mut second_tab, _) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    first_tab.close().await?;
    second_console.close().await?;
    agent.say(&session, "a1", "still there?").await?;
    let message = second_tab.expect("chat.message.new").await?;
    ensure!(message["content"] == "still there?", "M2: {message}");
    let (mut other, _) = Client::visitor(&server, "other").await?;
    let assigned = other.expect("chat.session.assigned").await?;
    ensure!(assigned["agentInfo"]["adminId"] == "agent", "P1: {assigned}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b39_the_next_page_is_no_leaving() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let (page, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    let resume = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    // The next page's socket comes before the old one goes …
    let (next, connected) = Client::connect(&server, resume.clone()).await?;
    page.close().await?;
    ensure!(session_id(&connected) == session, "{connected}");
    // … or after it, and once without a close frame.
    drop(next);
    let (mut user, connected) = Client::connect(&server, resume).await?;
    ensure!(connected["session"]["status"] == "active", "{connected}");
    user.say(&session, "k1", "on the next page").await?;
    agent.expect("chat.message.new").await?;
    for event in ["chat.session.ended", "chat.session.removed", "chat.session.new"] {
        agent.expect_none(event).await?;
    }

    agent.close().await?;
    let (mut agent, connected) =
        Client::connect(&server, json!({"token": server.agent("agent")})).await?;
    ensure!(connected["sessions"][0]["sessionId"] == session.as_str(), "Z7: {connected}");
    ensure!(agent.expect("chat.agent.status").await?["status"] == "online", "Z7");
    agent.say(&session, "a1", "me too").await?;
    user.expect("chat.message.new").await?;
    user.expect_none("chat.session.requeued").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b42_after_a_reconnect_the_server_says_what_it_holds_and_takes_a_new_word() -> Result<()> {
    let server = Server::start().await?;
    let (mut colleague, _) =
        Client::connect(&server, json!({"token": server.agent("colleague")})).await?;
    let link = Link::to(&server).await?;
    let mut agent = Client::open_at(link.address).await?;
    agent.call("chat.connect", json!({"token": server.agent("agent")})).await?;
    agent.call("chat.agent.online", json!({"maxSessions": 5})).await?;
    colleague.until("chat.agent.list", json!({}), |list| is_online(list, "agent")).await?;
    link.hold_answers();
    agent.send("chat.agent.offline", json!({})).await?;
    colleague.until("chat.agent.list", json!({}), |list| !is_online(list, "agent")).await?;
    link.cut().await;

    let (mut agent, _) = Client::connect(&server, json!({"token": server.agent("agent")})).await?;
    let status = agent.expect("chat.agent.status").await?;
    ensure!(status["status"] == "offline", "Z7: what holds, not what was believed: {status}");
    let (mut user, _) = Client::visitor(&server, "user").await?;
    user.expect("chat.offline_notice").await?;
    agent.call("chat.agent.online", json!({"maxSessions": 5})).await?;
    let again = agent.call("chat.agent.online", json!({"maxSessions": 5})).await?;
    ensure!(again["status"] == "online", "said twice, true once: {again}");
    user.expect("chat.session.assigned").await?;
    Ok(())
}

/// Fewer than the case's 10,000, in waves: what one leaves behind the next would add to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b45_half_open_connections_leave_nothing_behind() -> Result<()> {
    const WAVE: u32 = 200;
    let server =
        attentive(1_500).set("KEFU__LIMITS__CONNECTS_PER_MINUTE", 1_000_000).start().await?;
    let mut resident = Vec::new();
    for _ in 0..3 {
        let mut silent: Vec<Client> = stream::iter(0..WAVE)
            .map(|n| {
                let token = server.user(&format!("silent-{n}"));
                let resume = json!({"token": token, "source": "test", "intent": "resume"});
                let server = &server;
                async move { anyhow::Ok(Client::connect(server, resume).await?.0) }
            })
            .buffer_unordered(32)
            .try_collect()
            .await?;
        for client in &mut silent {
            ensure!(client.gone().await?.code == Some(4003), "P1");
        }
        tokio::time::timeout(PATIENCE, async {
            while connections(&server).await? > 0 {}
            anyhow::Ok(())
        })
        .await
        .context("connections that nobody has are counted")??;
        resident.push(resident_kib(&server)?);
    }
    // The first wave pays for what all share.
    let growth = resident[2] - resident[1];
    ensure!(growth < 4 * i64::from(WAVE), "KiB after each wave: {resident:?}");
    Ok(())
}

/// The table of connections, as the metrics tell its size.
async fn connections(server: &Server) -> Result<u64> {
    let metrics = reqwest::get(server.url("/metrics")).await?.text().await?;
    let line = metrics.lines().find(|line| line.starts_with("kefu_connections "));
    let number = line.context("the gauge")?.split(' ').nth(1).context("a number")?;
    Ok(number.parse()?)
}

fn resident_kib(server: &Server) -> Result<i64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse()?)
}

/// A visitor on a wire of its own, and the agent who was assigned.
struct Talk {
    agent: Client,
    user: Client,
    link: Link,
    session: String,
}

impl Talk {
    async fn begin(server: &Server) -> Result<Self> {
        let (mut agent, _) = Client::agent(server, "agent", 5).await?;
        let link = Link::to(server).await?;
        let mut user = Client::open_at(link.address).await?;
        let connect = json!({"token": server.user("user"), "source": "test"});
        let session = session_id(&user.call("chat.connect", connect).await?);
        agent.expect("chat.session.new").await?;
        Ok(Self { agent, user, link, session })
    }

    /// The user types, and the agent sees it.
    async fn types(&mut self) -> Result<()> {
        let typing = json!({"sessionId": self.session, "isTyping": true});
        self.user.send("chat.typing", typing).await?;
        let seen = self.agent.expect("chat.typing").await?;
        ensure!(seen["isTyping"] == true, "{seen}");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b62_typing_ends_with_the_message_the_connection_and_the_session() -> Result<()> {
    let server = Server::start().await?;
    let mut talk = Talk::begin(&server).await?;
    let session = talk.session.clone();
    talk.types().await?;
    talk.user.say(&session, "k1", "hello").await?;
    ensure!(talk.agent.expect("chat.typing").await?["isTyping"] == false, "P3: a message");
    talk.types().await?;
    talk.link.cut().await;
    ensure!(talk.agent.expect("chat.typing").await?["isTyping"] == false, "P3: a dead typist");

    let resume = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let (mut user, _) = Client::connect(&server, resume).await?;
    user.send("chat.typing", json!({"sessionId": session, "isTyping": true})).await?;
    ensure!(talk.agent.expect("chat.typing").await?["isTyping"] == true);
    talk.agent.call("chat.session.end", of(&session)).await?;
    ensure!(talk.agent.expect("chat.typing").await?["isTyping"] == false, "P3: the end");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b62_typing_ends_when_the_typist_falls_silent() -> Result<()> {
    let server = attentive(1_500).start().await?;
    let mut talk = Talk::begin(&server).await?;
    talk.types().await?;
    talk.link.stall();
    let begin = tokio::time::Instant::now();
    let seen = talk.agent.expect_alive("chat.typing", |_| true).await?;
    ensure!(seen["isTyping"] == false, "P3: {seen}");
    ensure!(begin.elapsed() < Duration::from_secs(6), "before the mark's own end");
    Ok(())
}
