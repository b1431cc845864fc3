//! Small values that tests need all the time: people, requests, rows.

use kefu_assignment::{Candidate, DecisionRecord, Outcome, Rule};
use kefu_core::Actor;
use kefu_core::{
    AdminId, AgentInfo, AssignmentId, Balance, Caller, ClientMsgId, IdSource, MsgId, NodeName,
    Person, SessionId, Timestamp, TraceId, UserId, UserInfo,
};
use kefu_messaging::{
    AppendRequest, AppendTarget, Draft, Receipt, ReceiptRequest, Reported, Sender,
};
use kefu_presence::{Agent, Availability};
use kefu_upload::{ImageFormat, UploadPath, UploadRow};

/// The node of every test event.
#[must_use]
pub fn node() -> NodeName {
    NodeName::new("test").expect("a valid node name")
}

/// The trace of every test event.
#[must_use]
pub fn trace() -> TraceId {
    TraceId::new("t").expect("a valid trace id")
}

/// A user whose name is their id.
#[must_use]
pub fn user(id: &str, balance: i64) -> UserInfo {
    UserInfo {
        user_id: UserId::new(id).expect("a valid user id"),
        name: id.to_owned(),
        avatar: None,
        balance: Some(Balance(balance)),
        vip: None,
    }
}

/// An agent's id.
#[must_use]
pub fn admin(id: &str) -> AdminId {
    AdminId::new(id).expect("a valid admin id")
}

/// An agent whose name is their id.
#[must_use]
pub fn agent_info(id: &str) -> AgentInfo {
    AgentInfo { admin_id: admin(id), name: id.to_owned(), avatar: None }
}

/// An agent's row as the router wants it: online, live, without sessions.
#[must_use]
pub fn agent_row(id: &str, cap: u32) -> Agent {
    let info = agent_info(id);
    Agent::new(info.clone(), cap).connected(&info).online(cap)
}

/// An agent's row that takes nothing.
#[must_use]
pub fn idle_agent_row(id: &str, cap: u32) -> Agent {
    Agent { availability: Availability::Offline, ..Agent::new(agent_info(id), cap) }
}

/// A verified user.
#[must_use]
pub fn user_caller(id: &UserId) -> Caller {
    Caller::User(user(id.as_str(), 0))
}

/// A verified agent.
#[must_use]
pub fn agent_caller(id: &AdminId) -> Caller {
    Caller::Agent(agent_info(id.as_str()))
}

/// A verified supervisor.
#[must_use]
pub fn supervisor_caller(id: &str) -> Caller {
    Caller::Supervisor(agent_info(id))
}

/// A sender's key.
#[must_use]
pub fn key(text: impl AsRef<str>) -> ClientMsgId {
    ClientMsgId::new(text).expect("a valid client key")
}

/// A user as a sender.
#[must_use]
pub fn from_user(id: &UserId) -> Sender {
    Sender::User(id.clone())
}

/// An agent as a sender.
#[must_use]
pub fn from_agent(id: &AdminId) -> Sender {
    Sender::Agent(id.clone())
}

/// A text for a named session.
#[must_use]
pub fn text(session: SessionId, sender: &Sender, client_key: &str, content: &str) -> AppendRequest {
    AppendRequest {
        target: AppendTarget::Session(session),
        sender: sender.clone(),
        client_msg_id: key(client_key),
        draft: Draft::Text(content.to_owned()),
        origin: None,
        trace_id: trace(),
    }
}

/// A user's text for their open session.
#[must_use]
pub fn text_to_open(user: &UserId, client_key: &str, content: &str) -> AppendRequest {
    AppendRequest {
        target: AppendTarget::OpenSessionOf(user.clone()),
        sender: from_user(user),
        client_msg_id: key(client_key),
        draft: Draft::Text(content.to_owned()),
        origin: None,
        trace_id: trace(),
    }
}

/// An image for a named session.
#[must_use]
pub fn image(
    session: SessionId,
    sender: &Sender,
    client_key: &str,
    path: UploadPath,
) -> AppendRequest {
    AppendRequest { draft: Draft::Image(path), ..text(session, sender, client_key, "") }
}

/// A receiver's report about one message.
#[must_use]
pub fn receipt(by: &Caller, msg_id: MsgId, receipt: Receipt) -> ReceiptRequest {
    ReceiptRequest {
        by: Reported::By(by.clone()),
        msg_id,
        receipt,
        cumulative: false,
        origin: None,
        trace_id: Some(trace()),
    }
}

/// A receiver's report about one message and everything before it.
#[must_use]
pub fn receipt_up_to(by: &Caller, msg_id: MsgId, kind: Receipt) -> ReceiptRequest {
    ReceiptRequest { cumulative: true, ..receipt(by, msg_id, kind) }
}

/// The delivery loop's report that pushes went unanswered (M3).
#[must_use]
pub const fn unanswered(msg_id: MsgId) -> ReceiptRequest {
    ReceiptRequest {
        by: Reported::BySystem,
        msg_id,
        receipt: Receipt::Failed,
        cumulative: false,
        origin: None,
        trace_id: None,
    }
}

/// An upload's row; `name` makes the path unique.
#[must_use]
pub fn upload_row(
    session: SessionId,
    uploader: &UserId,
    name: u128,
    created_at: Timestamp,
) -> UploadRow {
    UploadRow {
        path: UploadPath::with_name(created_at, name, ImageFormat::Png),
        session_id: session,
        uploader: Person::User(uploader.clone()),
        mime: ImageFormat::Png,
        size: 1_234,
        sha256: [7; 32],
        width: 640,
        height: 480,
        created_at,
    }
}

/// A record of an assignment by the drain.
#[must_use]
pub fn record(
    ids: &dyn IdSource,
    session: SessionId,
    owner: Option<&AdminId>,
    time: Timestamp,
) -> DecisionRecord {
    let candidates = owner
        .map(|admin_id| Candidate { admin_id: admin_id.clone(), load: 0, max_sessions: 1 })
        .into_iter()
        .collect();
    DecisionRecord {
        id: AssignmentId::next_after(ids, 0),
        session_id: session,
        admin_id: owner.cloned(),
        from: None,
        candidates,
        rule: Rule::LeastLoad,
        outcome: Outcome::Assigned,
        actor: Actor::System,
        note: None,
        time,
    }
}
