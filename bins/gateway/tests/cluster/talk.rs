//! A conversation whose people are on different gateways is the one that it would be on one.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::session_id;
use crate::support::{Client, HouseBuilder};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_on_three_gateways_talk_as_on_one() -> Result<()> {
    let house = HouseBuilder::of(3, 1).start().await?;
    let [a, b, c] = &house.gateways[..] else { anyhow::bail!("three gateways") };
    let (mut anna, _) = Client::agent(b, "anna", 5).await?;
    let (mut user, connected) = Client::visitor(a, "user").await?;
    let session = session_id(&connected)?;
    user.expect_where("chat.session.assigned", |p| p["agentInfo"]["adminId"] == "anna").await?;
    ensure!(anna.expect("chat.session.new").await?["sessionId"] == session.as_str());

    let ack = user.say(&session, "q1", "hello").await?;
    let question = anna.expect("chat.message.new").await?;
    ensure!(question["content"] == "hello" && question["msgId"] == ack["msgId"]);
    let delivered = json!({"msgId": question["msgId"], "status": "delivered"});
    anna.send("chat.message.ack", delivered).await?;
    ensure!(user.expect("chat.message.peer_ack").await?["status"] == "delivered");
    anna.send("chat.message.ack", json!({"msgId": question["msgId"]})).await?;
    ensure!(user.expect("chat.message.peer_ack").await?["status"] == "read");

    anna.send("chat.typing", json!({"sessionId": session, "isTyping": true})).await?;
    ensure!(user.expect("chat.typing").await?["isTyping"] == true);
    let answer = anna.say(&session, "a1", "good day").await?;
    ensure!(user.expect("chat.typing").await?["isTyping"] == false, "a message ends it (P3)");
    ensure!(user.expect("chat.message.new").await?["msgId"] == answer["msgId"]);
    user.send("chat.message.ack", json!({"msgId": answer["msgId"]})).await?;
    ensure!(anna.expect("chat.message.peer_ack").await?["status"] == "read");

    // A second device of the visitor, elsewhere, hears both sides (M2).
    let resume = |server: &crate::support::Server, seq: i64| {
        json!({
            "token": server.user("user"), "source": "test", "intent": "resume",
            "sessionId": session, "lastSeq": seq,
        })
    };
    let (mut second, connected) = Client::connect(c, resume(c, 2)).await?;
    ensure!(connected["unread"] == json!([]), "above the position there is nothing: {connected}");
    user.say(&session, "q2", "from the first device").await?;
    ensure!(second.expect("chat.message.new").await?["clientMsgId"] == "q2");
    ensure!(anna.expect("chat.message.new").await?["seq"] == 3);
    user.close().await?;

    // A reload that lands on another gateway.
    let (mut user, connected) = Client::connect(b, resume(b, 0)).await?;
    ensure!(connected["session"]["agentInfo"]["adminId"] == "anna", "{connected}");
    ensure!(connected["unread"].as_array().map(Vec::len) == Some(3), "M4: {connected}");
    anna.close().await?;
    let (mut anna, connected) = Client::connect(a, json!({"token": a.agent("anna")})).await?;
    ensure!(connected["sessions"][0]["sessionId"] == session.as_str(), "Z7: {connected}");

    let (mut bert, _) = Client::agent(c, "bert", 5).await?;
    let transfer = json!({"sessionId": session, "targetAdminId": "bert", "note": "knows refunds"});
    anna.call("chat.session.transfer", transfer).await?;
    let offer = bert.expect("chat.session.new").await?;
    ensure!(offer["note"] == "knows refunds" && offer["lastSeq"] == 3, "{offer}");
    anna.expect("chat.session.removed").await?;
    user.expect_where("chat.session.assigned", |p| p["agentInfo"]["adminId"] == "bert").await?;
    let lost = anna.refused("chat.history", json!({"sessionId": session, "afterSeq": 0})).await?;
    ensure!(lost["code"] == "not_found", "A3: {lost}");
    bert.say(&session, "b1", "bert here").await?;
    for device in [&mut user, &mut second] {
        let from_bert = |p: &serde_json::Value| p["senderId"] == "bert";
        device.expect_where("chat.message.new", from_bert).await?;
    }

    user.call("chat.session.end", json!({"sessionId": session})).await?;
    bert.expect("chat.session.ended").await?;
    second.expect("chat.session.ended").await?;
    let rate = json!({"sessionId": session, "rating": 5, "content": "快"});
    ensure!(user.call("chat.session.rate", rate).await?["rating"] == 5);
    let status = bert.call("chat.agent.online", json!({"maxSessions": 5})).await?;
    ensure!(status["activeSessions"] == 0, "{status}");
    crate::copies::until_exact(&house).await?;
    crate::copies::rows_hold(&house)
}
