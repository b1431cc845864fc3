//! One of each: domain values, and every server frame beside its JSON.

use kefu_console::{CannedReply, Note, Shelf};
use kefu_core::{
    AdminId, AgentInfo, Balance, CannedId, ClientMsgId, ErrorCode, MsgId, NoteId, Page, PageLimit,
    Person, Seq, SessionId, Timestamp, TraceId, UserId, UserInfo,
};
use kefu_desk::{ListedSession, SessionList};
use kefu_messaging::{
    Message, MessageStatus, MessageType, QueueEntry, Sender, SessionOffer, Stored,
};
use kefu_presence::Agent;
use kefu_protocol::{
    AgentList, AgentStatus, CannedItem, CannedList, CannedListRequest, CannedRef, CannedStored,
    Connected, ConnectedParts, ErrorFrame, History, Limits, Locale, MessageObject, NoteList,
    NoteObject, PeerAck, Pong, QueueList, QueuePosition, RemovalReason, ServerAck, ServerFrame,
    SessionAssigned, SessionEnded, SessionNew, SessionRated, SessionRemoved, SessionRequeued,
    SessionScope, SessionTransferred, SessionsList, Standing, Typing, session_object,
};
use kefu_session::{Rating, Session, Status, UserProfile};
use kefu_upload::UploadPath;
use serde_json::{Value, json};

mod supervise;

use supervise::supervise;

pub(crate) const IMAGE: &str = "/uploads/chat/20260128/000000000000000000000000000000ff.png";
const NOW: i64 = 1_769_558_400_000;

pub(crate) fn session_id() -> SessionId {
    SessionId::new(12).expect("valid")
}

pub(crate) fn msg_id(raw: i64) -> MsgId {
    MsgId::new(raw).expect("valid")
}

pub(crate) fn user() -> UserId {
    UserId::new("u1").expect("valid")
}

pub(crate) fn admin(id: &str) -> AdminId {
    AdminId::new(id).expect("valid")
}

pub(crate) fn trace() -> TraceId {
    TraceId::new("t1").expect("valid")
}

pub(crate) fn agent_info() -> AgentInfo {
    AgentInfo { admin_id: admin("a1"), name: "Ann".into(), avatar: None }
}

pub(crate) fn message() -> Message {
    Message {
        msg_id: msg_id(99),
        session_id: session_id(),
        seq: Seq(3),
        sender: Sender::User(user()),
        client_msg_id: ClientMsgId::new("k1").expect("valid"),
        msg_type: MessageType::Text,
        content: "你好".into(),
        status: MessageStatus::Pending,
        create_time: Timestamp(NOW),
    }
}

pub(crate) fn image() -> Message {
    Message { msg_type: MessageType::Image, content: IMAGE.into(), ..message() }
}

pub(crate) fn waiting() -> Session {
    Session {
        id: session_id(),
        user: UserProfile { user_id: user(), name: "Bo".into(), avatar: None, vip: Some(true) },
        status: Status::Waiting,
        admin_id: None,
        source: "web".into(),
        balance: Some(Balance(500)),
        priority: 500,
        last_seq: Seq(3),
        last_msg_id: Some(msg_id(99)),
        version: 4,
        started_at: Timestamp(NOW),
        queued_at: Timestamp(NOW),
        assigned_at: None,
        ended_at: None,
        ended_by: None,
        rating: None,
        noticed_at: None,
    }
}

pub(crate) fn active() -> Session {
    waiting().assigned(&admin("a1"), Timestamp(NOW)).expect("open")
}

fn unsigned(path: &UploadPath) -> String {
    path.to_string()
}

fn user_info() -> Value {
    json!({ "userId": "u1", "name": "Bo", "balance": 500, "vip": true })
}

fn listed() -> Value {
    json!({
        "msgId": "99", "sessionId": "12", "senderType": "user", "content": "你好", "time": NOW,
        "seq": 3, "msgType": "text", "senderId": "u1", "status": "pending"
    })
}

/// Every server frame and its payload.
pub(crate) fn golden() -> Vec<(ServerFrame, Value)> {
    [conversation(), desk(), console(), supervise()].into_iter().flatten().collect()
}

fn conversation() -> Vec<(ServerFrame, Value)> {
    let reader = Person::Agent(admin("a1"));
    let unread = MessageObject::listed(&message(), &reader, &unsigned);
    let session = session_object(&active(), Some(&agent_info()), None, true);
    let connected = Connected::from(ConnectedParts {
        standing: Standing::User(Some(session)),
        unread: Page { items: vec![unread], has_more: false },
        limits: Limits::new(500, 2_097_152),
        heartbeat: kefu_core::limit::HEARTBEAT,
        server_time: Timestamp(NOW),
    });
    let page = Page { items: vec![message()], has_more: true };
    let rating = Rating { score: 5, comment: "好".into(), time: Timestamp(NOW) };
    let stored = Stored { message: message().into(), duplicate: false };
    vec![
        (
            ServerFrame::Connected(connected),
            json!({
                "sessionId": "12", "agentInfo": { "adminId": "a1", "name": "Ann" }, "role": "user",
                "session": {
                    "sessionId": "12", "status": "active",
                    "agentInfo": { "adminId": "a1", "name": "Ann" },
                    "lastSeq": 3, "agentsOnline": true, "startedAt": NOW
                },
                "unread": [listed()], "hasMore": false, "heartbeatIntervalMs": 30_000,
                "serverTime": NOW,
                "limits": { "maxChars": 500, "maxUploadBytes": 2_097_152, "page": 50 }
            }),
        ),
        (
            ServerFrame::MessageNew(MessageObject::pushed(&message(), 1, true, &unsigned)),
            json!({
                "msgId": "99", "sessionId": "12", "senderType": "user", "content": "你好",
                "time": NOW, "seq": 3, "msgType": "text", "senderId": "u1", "clientMsgId": "k1",
                "attempt": 1
            }),
        ),
        (
            ServerFrame::ServerAck(ServerAck::from(&stored)),
            json!({
                "clientMsgId": "k1", "msgId": "99", "status": "pending", "seq": 3, "time": NOW,
                "duplicate": false
            }),
        ),
        (
            ServerFrame::PeerAck(PeerAck {
                msg_id: msg_id(99),
                status: MessageStatus::Read.into(),
                session_id: session_id(),
                seq: Seq(3),
            }),
            json!({ "msgId": "99", "status": "read", "sessionId": "12", "seq": 3 }),
        ),
        (
            ServerFrame::Typing(Typing {
                session_id: session_id(),
                is_typing: true,
                sender_type: None,
            }),
            json!({ "sessionId": "12", "isTyping": true }),
        ),
        (
            ServerFrame::SessionAssigned(SessionAssigned {
                session_id: session_id(),
                agent_info: (&agent_info()).into(),
            }),
            json!({ "sessionId": "12", "agentInfo": { "adminId": "a1", "name": "Ann" } }),
        ),
        (
            ServerFrame::SessionEnded(SessionEnded {
                session_id: session_id(),
                ended_by: Some(kefu_protocol::EndedBy::User),
                time: Some(Timestamp(NOW)),
            }),
            json!({ "sessionId": "12", "endedBy": "user", "time": NOW }),
        ),
        (
            ServerFrame::SessionRequeued(SessionRequeued {
                session_id: session_id(),
                reason: "agent_gone".into(),
            }),
            json!({ "sessionId": "12", "reason": "agent_gone" }),
        ),
        (
            ServerFrame::OfflineNotice(Locale::ZhCn.into()),
            json!({ "message": "客服当前不在线，请留言，我们上线后会尽快回复您。" }),
        ),
        (ServerFrame::Pong(Pong { server_time: Timestamp(NOW) }), json!({ "serverTime": NOW })),
        (
            ServerFrame::QueuePosition(QueuePosition {
                session_id: session_id(),
                position: 2,
                total: 7,
            }),
            json!({ "sessionId": "12", "position": 2, "total": 7 }),
        ),
        (
            ServerFrame::Error(ErrorFrame::new(ErrorCode::NotFound, "not found", trace())),
            json!({ "code": "not_found", "message": "not found", "traceId": "t1" }),
        ),
        (
            ServerFrame::History(History::new(session_id(), &page, &reader, &unsigned)),
            json!({ "sessionId": "12", "messages": [listed()], "hasMore": true }),
        ),
        (
            ServerFrame::SessionRated(SessionRated::new(session_id(), &rating)),
            json!({ "sessionId": "12", "rating": 5, "content": "好", "time": NOW }),
        ),
    ]
}

fn console() -> Vec<(ServerFrame, Value)> {
    let note = Note {
        id: NoteId::new(7).expect("valid"),
        session_id: session_id(),
        admin_id: admin("a1"),
        name: "Ann".into(),
        key: ClientMsgId::new("n1").ok(),
        content: "急".into(),
        time: Timestamp(NOW),
    };
    let noted = json!({
        "noteId": "7", "sessionId": "12", "adminId": "a1", "name": "Ann", "content": "急", "time": NOW
    });
    let mut own = noted.clone();
    own["clientMsgId"] = "n1".into();
    let page = Page { items: vec![note.clone()], has_more: true };
    let reply = CannedReply {
        id: CannedId::new(4).expect("valid"),
        shelf: Shelf::Team,
        shortcut: "hi".into(),
        title: String::new(),
        content: "你好".into(),
        update_time: Timestamp(NOW),
    };
    let item = json!({
        "id": "4", "shortcut": "hi", "title": "", "content": "你好", "scope": "team"
    });
    let request = CannedListRequest { query: String::new(), cursor: None, limit: PageLimit::MAX };
    let replies = Page { items: vec![reply.clone()], has_more: true };
    let listed = ListedSession {
        session: active(),
        agent: Some(agent_info()),
        unread: 2,
        last: Some(image()),
    };
    let silent = ListedSession { last: None, ..listed.clone() };
    let list = SessionList {
        page: Page { items: vec![listed, silent], has_more: true },
        agents_online: true,
    };
    let mut entry = json!({
        "sessionId": "12", "status": "active", "agentInfo": { "adminId": "a1", "name": "Ann" },
        "lastSeq": 3, "agentsOnline": true, "startedAt": NOW, "userInfo": user_info(),
        "source": "web", "unreadCount": 2, "lastMessage": {
            "seq": 3, "senderType": "user", "msgType": "image", "content": IMAGE, "time": NOW
        }
    });
    let first = entry.clone();
    entry["lastMessage"] = Value::Null;
    vec![
        (
            ServerFrame::SessionsList(SessionsList::new(SessionScope::Mine, &list, &unsigned)),
            json!({ "scope": "mine", "sessions": [first, entry], "nextCursor": "12" }),
        ),
        (ServerFrame::NoteNew(NoteObject::new(&note, true)), own),
        (
            ServerFrame::NoteList(NoteList::new(session_id(), &page, Some(&admin("a2")))),
            json!({ "sessionId": "12", "notes": [noted], "hasMore": true }),
        ),
        (
            ServerFrame::CannedList(CannedList::new(&request, &replies)),
            json!({ "items": [item], "nextCursor": "1" }),
        ),
        (
            ServerFrame::CannedPut(CannedStored { item: CannedItem::from(&reply) }),
            json!({ "item": item }),
        ),
        (ServerFrame::CannedDelete(CannedRef { id: reply.id }), json!({ "id": "4" })),
    ]
}

fn desk() -> Vec<(ServerFrame, Value)> {
    let user = UserInfo {
        user_id: user(),
        name: "Bo".into(),
        avatar: None,
        balance: Some(Balance(500)),
        vip: Some(true),
    };
    let offer = SessionOffer {
        session_id: session_id(),
        user: user.clone(),
        source: "web".into(),
        unread: 1,
        last_seq: Seq(3),
        note: Some("VIP".into()),
    };
    let entry =
        QueueEntry { session_id: session_id(), user, waiting_since: Timestamp(NOW), position: 1 };
    let agent = Agent::new(agent_info(), 10).connected(&agent_info()).online(10);
    vec![
        (
            ServerFrame::SessionNew(SessionNew::from(&offer)),
            json!({
                "sessionId": "12", "userInfo": user_info(), "source": "web", "unread": 1,
                "lastSeq": 3, "note": "VIP"
            }),
        ),
        (
            ServerFrame::QueueList(QueueList::new(&[entry], 7, 3)),
            json!({
                "sessions": [{
                    "sessionId": "12", "userInfo": user_info(), "waitingSince": NOW, "position": 1
                }],
                "total": 7, "version": 3
            }),
        ),
        (
            ServerFrame::SessionRemoved(SessionRemoved {
                session_id: session_id(),
                reason: RemovalReason::Requeued,
                target_admin_id: None,
            }),
            json!({ "sessionId": "12", "reason": "requeued" }),
        ),
        (
            ServerFrame::AgentStatus(AgentStatus::from(&agent)),
            json!({ "status": "online", "maxSessions": 10, "activeSessions": 0 }),
        ),
        (
            ServerFrame::SessionTransferred(SessionTransferred {
                session_id: session_id(),
                target_admin_id: admin("a2"),
            }),
            json!({ "sessionId": "12", "targetAdminId": "a2" }),
        ),
        (
            ServerFrame::AgentList(AgentList::new(&[agent])),
            json!({
                "agents": [{
                    "adminId": "a1", "name": "Ann", "status": "online", "activeSessions": 0,
                    "maxSessions": 10
                }]
            }),
        ),
    ]
}
