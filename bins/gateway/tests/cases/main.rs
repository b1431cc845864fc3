//! Failures that other live-chat products had in public, each as a case of its own through real sockets
//! against the real binary. A test begins with the case's number; `docs/cases.md` has the table.

#[path = "../support/mod.rs"]
mod support;

mod alive;
mod assignment;
mod delivery;
mod identity;
mod images;
mod line;
mod link;
mod note;
mod one_session;
mod order;
mod presence;
mod two_nodes;
mod unread;

use serde_json::{Value, json};

/// The session of a `chat.connected`.
fn session_id(connected: &Value) -> String {
    connected["sessionId"].as_str().unwrap_or_default().to_owned()
}

/// The payload of a text message.
fn text(session: &str, key: &str, content: &str) -> Value {
    json!({"sessionId": session, "msgType": "text", "content": content, "clientMsgId": key})
}

/// The payload that names a session.
fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

/// A transfer of a session to an agent.
fn to(session: &str, target: &str) -> Value {
    json!({"sessionId": session, "targetAdminId": target})
}

/// Everything above a position.
fn after(session: &str, seq: i64) -> Value {
    json!({"sessionId": session, "afterSeq": seq})
}

/// The `messages` of a page, or the `unread` of a connect, by position.
fn seqs(list: &Value) -> Vec<i64> {
    let messages = list.as_array().into_iter().flatten();
    messages.filter_map(|message| message["seq"].as_i64()).collect()
}
