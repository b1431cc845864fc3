//! What is unread, on every device of a person.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::session_id;
use crate::support::{Client, Server};

async fn second_device(server: &Server, token: &str) -> Result<(Client, Value)> {
    Client::connect(server, json!({"token": token, "intent": "resume"})).await
}

fn read_up_to(message: &Value) -> Value {
    json!({"msgId": message["msgId"], "status": "read", "cumulative": true})
}

/// Unread is what the other side wrote above the cursor, and one cursor serves all devices of a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b64_what_is_read_or_answered_on_one_device_is_read_on_all() -> Result<()> {
    let server = Server::start().await?;
    let (mut desk, _) = Client::agent(&server, "anna", 5).await?;
    let (mut phone, _) = second_device(&server, &server.agent("anna")).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    desk.expect("chat.session.new").await?;
    let mut last = json!(null);
    for n in 1..=3 {
        user.say(&session, &format!("q{n}"), "hello").await?;
        last = desk.expect("chat.message.new").await?;
        phone.expect("chat.message.new").await?;
    }
    let unread = |connected: &Value| connected["sessions"][0]["unreadCount"].clone();
    ensure!(unread(&second_device(&server, &server.agent("anna")).await?.1) == 3);

    desk.send("chat.message.ack", read_up_to(&last)).await?;
    let cursor = phone.expect("chat.session.read").await?;
    ensure!(cursor == json!({"sessionId": session, "seq": 3}), "{cursor}");
    ensure!(unread(&second_device(&server, &server.agent("anna")).await?.1) == 0);
    desk.expect_none("chat.session.read").await?;

    // Answered without scrolling: whoever answers has read what is there.
    user.say(&session, "q4", "and?").await?;
    let question = phone.expect("chat.message.new").await?;
    phone.send("chat.message.ack", read_up_to(&question)).await?;
    let answer = phone.say(&session, "a1", "soon").await?;
    ensure!(desk.expect("chat.session.read").await?["seq"] == 4, "B64");
    ensure!(unread(&second_device(&server, &server.agent("anna")).await?.1) == 0);

    // The visitor's devices share theirs too, and nobody else hears of it.
    let (mut tablet, _) = second_device(&server, &server.user("user")).await?;
    user.send("chat.message.ack", json!({"msgId": answer["msgId"], "cumulative": true})).await?;
    ensure!(tablet.expect("chat.session.read").await?["seq"] == 5, "B64");
    desk.expect_where("chat.message.peer_ack", |p| p["status"] == "read").await?;
    desk.expect_none("chat.session.read").await?;
    phone.expect_none("chat.session.read").await?;
    user.expect_none("chat.session.read").await
}
