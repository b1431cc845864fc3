//! What a device missed while it was away, and when a message counts as delivered.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::link::Link;
use crate::support::{Client, Server, ServerBuilder};
use crate::{after, seqs, session_id, text, to};

/// The colleague can get the session and give it back because the agent's other console stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b47_a_console_catches_up_by_position_whoever_wrote_and_owned_meanwhile() -> Result<()> {
    let server = Server::start().await?;
    let (mut stays, _) = Client::agent(&server, "anna", 5).await?;
    let (leaves, _) = Client::connect(&server, json!({"token": server.agent("anna")})).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    stays.expect("chat.session.new").await?;
    let (_other, connected) = Client::visitor(&server, "other").await?;
    let lost = session_id(&connected);
    stays.expect("chat.session.new").await?;
    user.say(&session, "k1", "seen by both consoles").await?;
    drop(leaves);

    user.say(&session, "k2", "missed").await?;
    let (mut bert, _) = Client::agent(&server, "bert", 5).await?;
    stays.call("chat.session.transfer", to(&session, "bert")).await?;
    bert.say(&session, "b3", "a colleague's reply").await?;
    user.say(&session, "k4", "missed too").await?;
    bert.call("chat.session.transfer", to(&session, "anna")).await?;
    stays.call("chat.session.transfer", to(&lost, "bert")).await?;

    let positions = json!({session.as_str(): 1, lost.as_str(): 0});
    let back = json!({"token": server.agent("anna"), "lastSeqs": positions});
    let (_back, connected) = Client::connect(&server, back).await?;
    ensure!(seqs(&connected["unread"]) == [2, 3, 4], "M4: {connected}");
    ensure!(connected["unread"][1]["senderId"] == "bert", "M4: {connected}");
    let open = connected["sessions"].as_array().map_or(0, Vec::len);
    ensure!(open == 1 && connected["sessions"][0]["sessionId"] == session.as_str(), "{connected}");
    ensure!(connected["sessions"][0]["lastSeq"] == 4, "{connected}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b48_what_was_sent_around_a_cut_is_there_exactly_once() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let link = Link::to(&server).await?;
    let mut user = Client::open_at(link.address).await?;
    let connect = json!({"token": server.user("user"), "source": "test"});
    let session = session_id(&user.call("chat.connect", connect).await?);
    agent.expect("chat.session.new").await?;
    link.hold_answers();
    agent.say(&session, "a1", "on its way when the wire is cut").await?;
    user.send("chat.message.send", text(&session, "k2", "stored, its answer lost")).await?;
    agent.expect("chat.message.new").await?;
    link.cut().await;
    user.gone().await?;
    agent.say(&session, "a3", "while nobody is connected").await?;

    let back = json!({
        "token": server.user("user"), "source": "test", "intent": "resume",
        "sessionId": session, "lastSeq": 0,
    });
    let (mut user, connected) = Client::connect(&server, back).await?;
    ensure!(seqs(&connected["unread"]) == [1, 2, 3], "M4: {connected}");
    for index in [0, 2] {
        let receipt = json!({"msgId": connected["unread"][index]["msgId"], "status": "delivered"});
        user.send("chat.message.ack", receipt).await?;
        ensure!(agent.expect("chat.message.peer_ack").await?["status"] == "delivered");
    }
    let repeat = user.call("chat.message.send", text(&session, "k2", "stored, its answer lost"));
    let repeat = repeat.await?;
    ensure!(repeat["duplicate"] == true && repeat["seq"] == 2, "T2: {repeat}");
    user.expect_none("chat.message.new").await?;
    agent.expect_none("chat.message.new").await?;
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(seqs(&page["messages"]) == [1, 2, 3], "{page}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b56_what_was_written_to_a_peer_that_never_reads_is_not_delivered() -> Result<()> {
    let server =
        ServerBuilder::default().set("KEFU__DELIVERY__RETRY_MS", "50,100,200").start().await?;
    let (mut agent, _) = Client::agent(&server, "agent", 5).await?;
    let link = Link::to(&server).await?;
    let mut user = Client::open_at(link.address).await?;
    let connect = json!({"token": server.user("user"), "source": "test"});
    let session = session_id(&user.call("chat.connect", connect).await?);
    agent.expect("chat.session.new").await?;
    link.stall();
    let sent = agent.say(&session, "a1", "do you read me?").await?;
    ensure!(sent["status"] == "pending", "stored, no more: {sent}");
    let told = agent.expect("chat.message.peer_ack").await?;
    ensure!(told["status"] == "failed" && told["msgId"] == sent["msgId"], "M3: {told}");
    link.release();
    let message = user.expect("chat.message.new").await?;
    ensure!(message["msgId"] == sent["msgId"], "{message}");
    let is_delivered = |told: &Value| told["status"] == "delivered";
    user.send("chat.message.ack", json!({"msgId": sent["msgId"], "status": "delivered"})).await?;
    agent.expect_where("chat.message.peer_ack", is_delivered).await?;
    Ok(())
}
