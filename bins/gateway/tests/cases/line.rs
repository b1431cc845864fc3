//! The waiting line as visitors and consoles see it, and what happens when nobody is there.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::link::Link;
use crate::support::{Client, Server};
use crate::{of, session_id, text};

/// The place of a session in a `chat.queue.list`.
fn place(list: &Value, session: &str) -> Option<u64> {
    let rows = list["sessions"].as_array()?;
    rows.iter().find(|row| row["sessionId"] == session)?["position"].as_u64()
}

/// The lists are whole, so a lost one is healed by the next; a number tells an older from a newer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b32_a_console_that_missed_news_of_the_line_gets_all_of_it() -> Result<()> {
    let server = Server::start().await?;
    let link = Link::to(&server).await?;
    let mut console = Client::open_at(link.address).await?;
    console.call("chat.connect", json!({"token": server.agent("anna")})).await?;
    let known = console.call("chat.queue.list", json!({})).await?;
    ensure!(known["total"] == 0, "{known}");
    link.hold_answers();
    let (_first, one) = Client::visitor(&server, "first").await?;
    link.cut().await;
    console.gone().await?;
    let token = json!({"token": server.agent("anna")});
    let (mut console, _) = Client::connect(&server, token).await?;
    let list = console.call("chat.queue.list", json!({})).await?;
    ensure!(place(&list, &session_id(&one)) == Some(1), "{list}");
    ensure!(list["version"].as_i64() > known["version"].as_i64(), "{list}");

    let (_second, two) = Client::visitor(&server, "second").await?;
    let news = console.expect_where("chat.queue.list", |list| list["total"] == 2).await?;
    ensure!(place(&news, &session_id(&one)) == Some(1), "whole, not a difference: {news}");
    ensure!(place(&news, &session_id(&two)) == Some(2), "{news}");
    ensure!(news["version"].as_i64() > list["version"].as_i64(), "{news}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b33_a_reload_while_waiting_shows_the_place_again() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 1).await?;
    let (_served, _) = Client::visitor(&server, "served").await?;
    agent.expect("chat.session.new").await?;
    let (_ahead, _) = Client::visitor(&server, "ahead").await?;
    let (mut user, _) = Client::visitor(&server, "user").await?;
    user.expect_where("chat.queue.position", |p| p["position"] == 2).await?;
    user.close().await?;
    let resume = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let (_user, connected) = Client::connect(&server, resume).await?;
    let state = &connected["session"];
    ensure!(state["status"] == "waiting" && connected["agentInfo"].is_null(), "{connected}");
    ensure!(state["position"] == 2 && state["total"] == 2, "M4: {state}");
    ensure!(state["agentsOnline"] == true, "{state}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b34_a_message_to_an_agent_who_has_just_gone_is_kept_and_answered_later() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let page = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let (mut user, connected) = Client::connect(&server, page).await?;
    ensure!(connected["sessionId"].is_null(), "only a page so far: {connected}");
    agent.call("chat.agent.offline", json!({})).await?;

    user.send("chat.connect", json!({"token": server.user("user"), "source": "test"})).await?;
    let first = json!({"msgType": "text", "content": "anybody?", "clientMsgId": "k1"});
    user.send("chat.message.send", first).await?;
    let connected = user.expect("chat.connected").await?;
    ensure!(connected["session"]["agentsOnline"] == false, "{connected}");
    let ack = user.expect("chat.message.server_ack").await?;
    ensure!(ack["status"] == "pending" && ack["seq"] == 1, "2.7: {ack}");
    let notice = user.expect("chat.offline_notice").await?;
    ensure!(notice["message"].is_string(), "CC-14: {notice}");
    let list = agent.call("chat.queue.list", json!({})).await?;
    ensure!(list["sessions"][0]["sessionId"] == connected["sessionId"], "2.7: {list}");

    agent.call("chat.agent.online", json!({"maxSessions": 5})).await?;
    user.expect("chat.session.assigned").await?;
    let offer = agent.expect("chat.session.new").await?;
    ensure!(offer["unread"] == 1 && offer["lastSeq"] == 1, "{offer}");
    ensure!(agent.expect("chat.message.new").await?["content"] == "anybody?");
    Ok(())
}

/// A visitor in line, with the session.
struct Waiting(Client, String);

impl Waiting {
    async fn arrive(server: &Server, name: &str, balance: i64) -> Result<Self> {
        let (client, connected) = Client::rich_visitor(server, name, balance).await?;
        Ok(Self(client, session_id(&connected)))
    }

    /// That visitor and console come to see this place.
    async fn stands(&mut self, console: &mut Client, position: u64, total: u64) -> Result<()> {
        let is_it = |p: &Value| p["position"] == position && p["total"] == total;
        self.0.expect_where("chat.queue.position", is_it).await.context("the visitor's place")?;
        let list = console.call("chat.queue.list", json!({})).await?;
        ensure!(place(&list, &self.1) == Some(position) && list["total"] == total, "{list}");
        Ok(())
    }

    /// That no place below the first was ever told.
    fn was_told_places(&self) -> Result<()> {
        let places = self.0.inbox().filter(|frame| frame["event"] == "chat.queue.position");
        for told in places {
            ensure!(told["payload"]["position"].as_i64() >= Some(1), "{told}");
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b119_the_place_told_is_one_more_than_those_ahead_at_every_change() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 1).await?;
    let (_served, busy) = Client::visitor(&server, "served").await?;
    agent.expect("chat.session.new").await?;
    let mut first = Waiting::arrive(&server, "first", 100).await?;
    first.stands(&mut agent, 1, 1).await?;
    let mut second = Waiting::arrive(&server, "second", 100).await?;
    second.stands(&mut agent, 2, 2).await?;
    let mut third = Waiting::arrive(&server, "third", 100).await?;
    third.stands(&mut agent, 3, 3).await?;

    second.0.call("chat.session.end", of(&second.1)).await?;
    third.stands(&mut agent, 2, 2).await?;
    first.stands(&mut agent, 1, 2).await?;

    let mut rich = Waiting::arrive(&server, "rich", 500).await?;
    rich.stands(&mut agent, 1, 3).await?;
    first.stands(&mut agent, 2, 3).await?;
    third.stands(&mut agent, 3, 3).await?;

    agent.call("chat.session.end", of(&session_id(&busy))).await?;
    rich.0.expect("chat.session.assigned").await?;
    first.stands(&mut agent, 1, 2).await?;
    third.stands(&mut agent, 2, 2).await?;
    for waiting in [&first, &second, &third, &rich] {
        waiting.was_told_places()?;
    }
    let refusal = second.0.refused("chat.message.send", text(&second.1, "k", "x")).await?;
    ensure!(refusal["code"] == "session_closed", "S2: {refusal}");
    Ok(())
}
