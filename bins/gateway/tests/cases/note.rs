//! Notes that agents write for each other.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::support::{Client, Server};
use crate::{after, session_id, text};

const PRIVATE: &str = "private: this visitor is difficult";

/// Fails if anything of the note is among what a visitor got.
fn without_note(frames: &[Value]) -> Result<()> {
    for frame in frames {
        let text = frame.to_string();
        ensure!(!text.contains(PRIVATE) && !text.contains("noteId"), "B95: {frame}");
        let event = frame["event"].as_str().unwrap_or_default();
        ensure!(!event.starts_with("chat.note"), "B95: {frame}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b95_a_private_note_never_reaches_the_visitor() -> Result<()> {
    let server = Server::start().await?;
    let (mut agent, _) = Client::agent(&server, "anna", 5).await?;
    let (mut boss, _) =
        Client::connect(&server, json!({"token": server.supervisor("boss")})).await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    agent.expect("chat.session.new").await?;
    user.say(&session, "q1", "hello").await?;

    let note = json!({"sessionId": session, "content": PRIVATE, "clientMsgId": "n1"});
    let added = agent.call("chat.note.add", note.clone()).await?;
    ensure!(added["content"] == PRIVATE && added["adminId"] == "anna", "{added}");
    let again = agent.call("chat.note.add", note).await?;
    ensure!(again == added, "a repeat is the same note: {again}");
    let told = boss.expect("chat.note.new").await?;
    ensure!(told["noteId"] == added["noteId"] && told.get("clientMsgId").is_none(), "{told}");
    agent.say(&session, "a1", "good day").await?;
    boss.call("chat.note.add", json!({"sessionId": session, "content": PRIVATE})).await?;
    agent.expect("chat.note.new").await?;

    // Every way in which a visitor reads: pushes, history in both directions, the HTTP call, a reload
    // with and without a position, the end.
    user.expect("chat.message.new").await?;
    without_note(&user.take_inbox())?;
    let history = user.call("chat.history", after(&session, 0)).await?;
    let latest = user.call("chat.history", json!({"sessionId": session})).await?;
    without_note(&[history.clone(), latest])?;
    ensure!(history["messages"].as_array().map(Vec::len) == Some(2), "{history}");
    let url = server.url(&format!("/api/v1/sessions/{session}/messages?after_seq=0"));
    let page = reqwest::Client::new().get(url).bearer_auth(server.user("user")).send().await?;
    without_note(&[page.json().await?])?;
    for position in [json!({}), json!({"sessionId": session, "lastSeq": 0})] {
        let mut connect = json!({"token": server.user("user"), "intent": "resume"});
        for (name, value) in position.as_object().into_iter().flatten() {
            connect[name] = value.clone();
        }
        let (mut device, connected) = Client::connect(&server, connect).await?;
        without_note(&[connected])?;
        device.call("chat.ping", json!({})).await?;
        without_note(&device.take_inbox())?;
    }
    for (event, payload) in [
        ("chat.note.list", json!({"sessionId": session})),
        ("chat.note.add", json!({"sessionId": session, "content": "mine"})),
        ("chat.note.list", json!({"sessionId": "1"})),
    ] {
        let refusal = user.refused(event, payload).await?;
        ensure!(refusal["code"] == "forbidden", "{event}: {refusal}");
    }
    user.call("chat.session.end", json!({"sessionId": session})).await?;
    agent.call("chat.note.add", json!({"sessionId": session, "content": PRIVATE})).await?;
    let (mut next, connected) = Client::visitor(&server, "user").await?;
    without_note(&[connected])?;
    without_note(&[next.call("chat.history", after(&session, 0)).await?])?;
    next.call("chat.ping", json!({})).await?;
    user.call("chat.ping", json!({})).await?;
    without_note(&next.take_inbox())?;
    without_note(&user.take_inbox())?;

    // A note takes no position: the next message follows the last one.
    let (mut other, connected) = Client::visitor(&server, "other").await?;
    let session = session_id(&connected);
    let first = other.call("chat.message.send", text(&session, "k1", "one")).await?;
    boss.call("chat.note.add", json!({"sessionId": session, "content": PRIVATE})).await?;
    let second = other.call("chat.message.send", text(&session, "k2", "two")).await?;
    ensure!((&first["seq"], &second["seq"]) == (&json!(1), &json!(2)), "{first} {second}");
    Ok(())
}
