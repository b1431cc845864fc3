//! A supervisor on one gateway, the people on two others, the tables in PostgreSQL.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::session_id;
use crate::support::{Client, HouseBuilder, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_on_a_third_gateway_sees_everything() -> Result<()> {
    let house = HouseBuilder::of(3, 1).start().await?;
    let [a, b, c] = &house.gateways[..] else { anyhow::bail!("three gateways") };
    let (mut boss, _) = Client::connect(c, json!({"token": c.supervisor("boss")})).await?;
    let empty = boss.call("chat.board", json!({})).await?;
    ensure!(empty["agents"] == json!([]), "{empty}");
    let (mut anna, _) = Client::agent(b, "anna", 5).await?;
    let (mut user, connected) = Client::visitor(a, "user").await?;
    let session = session_id(&connected)?;
    anna.expect("chat.session.new").await?;
    boss.call("chat.session.watch", json!({"sessionId": session})).await?;

    user.say(&session, "q", "我要退款").await?;
    ensure!(boss.expect("chat.message.new").await?["content"] == "我要退款");
    let question = anna.expect("chat.message.new").await?;
    anna.send("chat.message.ack", json!({"msgId": question["msgId"]})).await?;
    ensure!(boss.expect("chat.message.peer_ack").await?["status"] == "read");
    anna.send("chat.typing", json!({"sessionId": session, "isTyping": true})).await?;
    ensure!(boss.expect("chat.typing").await?["senderType"] == "agent");
    anna.say(&session, "a", "马上").await?;
    ensure!(boss.expect("chat.message.new").await?["content"] == "马上");
    let page = json!({"url": "https://shop.test/cart"});
    user.send("chat.page", page).await?;
    ensure!(anna.expect("chat.page").await?["url"] == "https://shop.test/cart");
    ensure!(boss.expect("chat.page").await?["sessionId"] == session.as_str());
    let note = json!({"sessionId": session, "content": "a patient one"});
    anna.call("chat.note.add", note).await?;
    ensure!(boss.expect("chat.note.new").await?["content"] == "a patient one");
    boss.expect_where("chat.board", |p| {
        p["agents"][0]["activeSessions"] == 1 && p["firstResponseMs"]["p90"].is_u64()
    })
    .await?;

    // A second device of the agent, elsewhere, knows what was read (B64).
    let (mut second, connected) = Client::connect(c, json!({"token": c.agent("anna")})).await?;
    ensure!(connected["sessions"][0]["unreadCount"] == 0, "{connected}");
    user.say(&session, "q2", "danke").await?;
    let last = anna.expect_where("chat.message.new", |p| p["seq"] == 3).await?;
    anna.send("chat.message.ack", json!({"msgId": last["msgId"], "cumulative": true})).await?;
    ensure!(second.expect("chat.session.read").await?["seq"] == 3);

    user.call("chat.session.end", json!({"sessionId": session})).await?;
    boss.expect("chat.session.ended").await?;
    user.expect_none("chat.note.new").await?;
    boss.expect_where("chat.board", |p| p["agents"][0]["activeSessions"] == 0).await?;
    until("what was said is found", async || {
        let search = json!({"scope": "all", "query": "退款"});
        let found = boss.call("chat.sessions.list", search).await?;
        Ok(found["sessions"][0]["sessionId"] == session.as_str())
    })
    .await
}
