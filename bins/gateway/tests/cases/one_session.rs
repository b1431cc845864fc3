//! One visitor, one session, one message: whatever is doubled, repeated or reloaded.

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use crate::images::{png, upload};
use crate::link::Link;
use crate::support::{Client, Server};
use crate::{after, seqs, session_id, text};

fn resume(server: &Server, user: &str) -> Value {
    json!({"token": server.user(user), "source": "test", "intent": "resume"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b01_ten_connects_at_once_open_one_session() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 10).await?;
    let connects = try_join_all((0..10).map(|_| Client::visitor(&server, "user"))).await?;
    let session = session_id(&connects[0].1);
    ensure!(!session.is_empty() && connects.iter().all(|(_, c)| session_id(c) == session), "S1");
    ensure!(agent.expect("chat.session.new").await?["sessionId"] == session.as_str());
    let status = agent.call("chat.agent.online", json!({"maxSessions": 10})).await?;
    ensure!(status["activeSessions"] == 1, "2.2: {status}");
    agent.expect_none("chat.session.new").await?;
    Ok(())
}

/// A picture needs its session's upload first, for which the test waits until an agent has the session;
/// the visitor's own device has not read `chat.connected` yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_messages_sent_before_the_answer_to_connect_share_one_session() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 10).await?;
    let mut user = Client::open(&server).await?;
    user.send("chat.connect", json!({"token": server.user("user"), "source": "test"})).await?;
    let first = json!({"msgType": "text", "content": "look", "clientMsgId": "k1"});
    user.send("chat.message.send", first).await?;
    let offer = agent.expect("chat.session.new").await?;
    let (status, stored) = upload(&server, &server.user("user"), "a.png", png(8)?).await?;
    ensure!(status == 201, "{stored}");
    let image = json!({"msgType": "image", "content": stored["url"], "clientMsgId": "k2"});
    user.send("chat.message.send", image).await?;
    let last = json!({"msgType": "text", "content": "broken", "clientMsgId": "k3"});
    user.send("chat.message.send", last).await?;

    let connected = user.expect("chat.connected").await?;
    for (seq, key) in [(1, "k1"), (2, "k2"), (3, "k3")] {
        let ack = user.expect("chat.message.server_ack").await?;
        ensure!(ack["seq"] == seq && ack["clientMsgId"] == key, "M6: {ack}");
    }
    let session = session_id(&connected);
    ensure!(offer["sessionId"] == session.as_str(), "{offer}");
    agent.expect_none("chat.session.new").await?;
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(seqs(&page["messages"]) == [1, 2, 3], "{page}");
    ensure!(page["messages"][1]["msgType"] == "image", "{page}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b04_a_connect_and_send_whose_answers_were_lost_are_repeated_without_a_second_row()
-> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 10).await?;
    let link = Link::to(&server).await?;
    let mut user = Client::open_at(link.address).await?;
    link.hold_answers();
    let connect = json!({"token": server.user("user"), "source": "test"});
    let first = json!({"msgType": "text", "content": "hello", "clientMsgId": "k1"});
    user.send("chat.connect", connect.clone()).await?;
    user.send("chat.message.send", first.clone()).await?;
    let offer = agent.expect("chat.session.new").await?;
    let stored = agent.expect("chat.message.new").await?;
    link.cut().await;
    user.gone().await?;
    ensure!(user.inbox().next().is_none(), "no answer got through");

    let (mut user, connected) = Client::connect(&server, connect).await?;
    ensure!(connected["sessionId"] == offer["sessionId"], "S1: {connected}");
    let ack = user.call("chat.message.send", first).await?;
    ensure!(ack["msgId"] == stored["msgId"] && ack["duplicate"] == true, "T2: {ack}");
    let page = user.call("chat.history", after(&session_id(&connected), 0)).await?;
    ensure!(seqs(&page["messages"]) == [1], "2.1: {page}");
    agent.expect_none("chat.session.new").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_a_reload_before_the_first_reply_shows_the_session_as_it_is() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "anna", 10).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    user.expect("chat.session.assigned").await?;
    agent.expect("chat.session.new").await?;
    user.say(&session, "k1", "hello").await?;
    user.close().await?;

    let (_user, connected) = Client::connect(&server, resume(&server, "user")).await?;
    ensure!(connected["sessionId"] == session.as_str(), "{connected}");
    ensure!(connected["agentInfo"]["adminId"] == "anna", "{connected}");
    let state = &connected["session"];
    ensure!(state["status"] == "active" && state["lastSeq"] == 1, "M4: {state}");
    ensure!(state["agentInfo"]["name"] == "anna name", "{state}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b50_after_a_reconnect_only_what_is_above_the_position_and_one_row_for_five_taps()
-> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 10).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    user.say(&session, "k1", "one").await?;
    agent.say(&session, "a2", "two").await?;
    user.expect("chat.message.new").await?;
    drop(user);
    agent.say(&session, "a3", "three").await?;

    let mut position = resume(&server, "user");
    position["sessionId"] = session.clone().into();
    position["lastSeq"] = 2.into();
    let (mut user, connected) = Client::connect(&server, position).await?;
    ensure!(seqs(&connected["unread"]) == [3], "M4: only what is above 2: {connected}");
    agent.expect("chat.message.new").await?;
    for _ in 0..5 {
        user.send("chat.message.send", text(&session, "k4", "four")).await?;
    }
    let mut acks = Vec::new();
    for _ in 0..5 {
        acks.push(user.expect("chat.message.server_ack").await?);
    }
    ensure!(acks.iter().all(|ack| ack["msgId"] == acks[0]["msgId"] && ack["seq"] == 4), "{acks:?}");
    let fresh = acks.iter().filter(|ack| ack["duplicate"] == false).count();
    ensure!(fresh == 1, "T2: {acks:?}");
    let page = user.call("chat.history", after(&session, 3)).await?;
    ensure!(seqs(&page["messages"]) == [4], "{page}");
    let pushed = agent.expect("chat.message.new").await?;
    agent
        .send("chat.message.ack", json!({"msgId": pushed["msgId"], "status": "delivered"}))
        .await?;
    ensure!(user.expect("chat.message.peer_ack").await?["status"] == "delivered");
    agent.expect_none("chat.message.new").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b52_a_retry_that_overtakes_a_slow_answer_stores_nothing_twice() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 10).await?;
    let link = Link::to(&server).await?;
    let mut user = Client::open_at(link.address).await?;
    let connect = json!({"token": server.user("user"), "source": "test"});
    let session = session_id(&user.call("chat.connect", connect).await?);
    link.hold_answers();
    user.send("chat.message.send", text(&session, "k1", "hello")).await?;
    let stored = agent.expect("chat.message.new").await?;
    // The client's timer went off: the answer is still under way.
    user.send("chat.message.send", text(&session, "k1", "hello")).await?;
    link.release();
    let first = user.expect("chat.message.server_ack").await?;
    let second = user.expect("chat.message.server_ack").await?;
    ensure!(first["msgId"] == stored["msgId"] && first["duplicate"] == false, "{first}");
    ensure!(second["msgId"] == stored["msgId"] && second["duplicate"] == true, "T2: {second}");
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(seqs(&page["messages"]) == [1], "2.1: {page}");
    Ok(())
}

/// The next day is a restart of everything, and a token that is not the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b69_who_comes_back_the_next_day_finds_the_conversation() -> Result<()> {
    let server = Server::start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    user.say(&session, "k1", "until tomorrow").await?;
    user.close().await?;
    let server = server.kill_and_restart().await?;
    let (mut user, connected) = Client::connect(&server, resume(&server, "user")).await?;
    ensure!(connected["sessionId"] == session.as_str(), "CC-20: {connected}");
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(page["messages"][0]["content"] == "until tomorrow", "{page}");
    user.call("chat.session.end", crate::of(&session)).await?;
    user.close().await?;

    let server = server.kill_and_restart().await?;
    let (mut user, connected) = Client::connect(&server, resume(&server, "user")).await?;
    ensure!(connected["sessionId"].is_null(), "S1: {connected}");
    let state = connected.get("session").context("the latest ended one")?;
    ensure!(state["sessionId"] == session.as_str() && state["status"] == "ended", "{state}");
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(page["messages"][0]["content"] == "until tomorrow", "A3: {page}");
    let (mut other, connected) = Client::connect(&server, resume(&server, "other")).await?;
    ensure!(connected["session"].is_null(), "nobody else's: {connected}");
    ensure!(other.refused("chat.history", after(&session, 0)).await?["code"] == "not_found");
    Ok(())
}
