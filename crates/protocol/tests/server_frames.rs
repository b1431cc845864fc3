//! What the server sends: every event byte for byte as `docs/protocol.md` writes it.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

mod samples;

use std::sync::Arc;

use kefu_core::limit::HEARTBEAT;
use kefu_core::{Actor, ErrorCode, Page, Person, Seq, Timestamp};
use kefu_messaging::{Push, RemovalReason};
use kefu_protocol::{
    Connected, ConnectedParts, ErrorFrame, FrameError, History, Limits, Locale, MessageObject,
    Outbound, Ref, ServerFrame, SessionEnded, Standing, frame_of_push, session_object,
};
use kefu_upload::UploadPath;
use samples::{
    IMAGE, active, admin, agent_info, golden, image, message, msg_id, session_id, trace, user,
    waiting,
};
use serde_json::{Value, json};

fn signed(path: &UploadPath) -> String {
    format!("{path}?exp=1&sig=x")
}

fn pushed(push: &Push) -> Value {
    payload(&frame_of_push(push, &signed, Locale::En))
}

fn payload(frame: &ServerFrame) -> Value {
    let text: Value = serde_json::from_str(&frame.encode(None)).expect("JSON");
    text["payload"].clone()
}

#[test]
fn every_event_is_written_as_documented() {
    for (frame, expected) in golden() {
        let text = frame.encode(None);
        let written: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(written, json!({ "event": frame.event(), "payload": expected }));
        let read = Outbound::parse(&text).expect("what we write we read");
        assert_eq!(read, Outbound { reference: None, frame });
    }
}

#[test]
fn every_event_has_a_sample() {
    for event in ServerFrame::EVENTS {
        assert!(golden().iter().any(|(frame, _)| frame.event() == *event), "{event}");
    }
}

#[test]
fn the_label_is_carried_back() {
    let (frame, _) = golden().swap_remove(0);
    let text = frame.encode(Some("a \"label\""));
    let read = Outbound::parse(&text).expect("what we write we read");
    assert_eq!(read.reference, Ref::new("a \"label\""));
    assert_eq!(read.frame, frame);
}

#[test]
fn only_the_senders_side_sees_the_key() {
    let push = |own| Push::Message { message: Arc::new(message()), attempt: 2, own };
    assert_eq!(pushed(&push(true))["clientMsgId"], "k1");
    assert_eq!(pushed(&push(false)).get("clientMsgId"), None);
    let listed = |viewer: &Person| {
        payload(&ServerFrame::MessageNew(MessageObject::listed(&message(), viewer, &signed)))
    };
    assert_eq!(listed(&Person::User(user()))["clientMsgId"], "k1");
    assert_eq!(listed(&Person::Agent(admin("u1"))).get("clientMsgId"), None, "other id space");
}

#[test]
fn lists_show_the_status_and_pushes_the_attempt() {
    let push = pushed(&Push::Message { message: Arc::new(message()), attempt: 2, own: false });
    assert_eq!((push.get("status"), &push["attempt"]), (None, &json!(2)));
    let page = Page { items: vec![message()], has_more: true };
    let history = History::new(session_id(), &page, &Person::User(user()), &signed);
    let listed = payload(&ServerFrame::History(history));
    assert_eq!(listed["hasMore"], true);
    let first = &listed["messages"][0];
    assert_eq!((&first["status"], first.get("attempt")), (&json!("pending"), None));
}

#[test]
fn images_are_signed_on_their_way_out() {
    let push = pushed(&Push::Message { message: Arc::new(image()), attempt: 1, own: false });
    assert_eq!(push["content"], format!("{IMAGE}?exp=1&sig=x"), "U1");
    assert_eq!(push["msgType"], "image");
}

#[test]
fn pushes_become_their_frames() {
    let id = session_id();
    let event = |push: &Push| frame_of_push(push, &signed, Locale::ZhCn);
    let ended = Push::Ended {
        session_id: id,
        ended_by: Some(Actor::Supervisor(admin("s1"))),
        time: Timestamp(5),
    };
    assert_eq!(
        pushed(&ended),
        json!({ "sessionId": "12", "endedBy": "supervisor", "time": 5 }),
        "the role, never the person"
    );
    let removed =
        Push::SessionRemoved { session_id: id, reason: RemovalReason::Transferred(admin("a2")) };
    assert_eq!(
        pushed(&removed),
        json!({ "sessionId": "12", "reason": "transferred", "targetAdminId": "a2" })
    );
    let ServerFrame::OfflineNotice(notice) = event(&Push::OfflineNotice) else {
        panic!("a notice")
    };
    assert!(notice.message.starts_with("客服"), "CC-14: in the connection's language");
    let status = Push::AgentStatus { online: true, max_sessions: 10, active_sessions: 3 };
    assert_eq!(
        pushed(&status),
        json!({ "status": "online", "maxSessions": 10, "activeSessions": 3 })
    );
    assert_eq!(
        event(&Push::Requeued { session_id: id, reason: "agent_gone" }).event(),
        "chat.session.requeued"
    );
}

#[test]
fn an_agents_session_object_has_the_user_and_a_users_has_not() {
    let plain = session_object(&active(), Some(&agent_info()), None, true);
    let for_user = serde_json::to_value(&plain).expect("JSON");
    assert_eq!(for_user.get("userInfo"), None);
    assert_eq!(for_user.get("source"), None);
    assert_eq!(for_user.get("note"), None);
    let for_agent =
        serde_json::to_value(plain.for_agent(&active(), 4, Some("vip".to_owned()))).expect("JSON");
    assert_eq!(for_agent["userInfo"]["balance"], 500);
    assert_eq!(for_agent["note"], "vip");
    assert_eq!((&for_agent["source"], &for_agent["unreadCount"]), (&json!("web"), &json!(4)));
}

#[test]
fn connected_tells_whose_session_it_is() {
    let connected = |standing| {
        let unread = Page { items: Vec::new(), has_more: false };
        let limits = Limits::new(500, 2_097_152);
        Connected::from(ConnectedParts {
            standing,
            unread,
            limits,
            heartbeat: HEARTBEAT,
            server_time: Timestamp(9),
        })
    };
    let open = session_object(&active(), Some(&agent_info()), None, true);
    let user = connected(Standing::User(Some(open.clone())));
    assert_eq!((user.session_id, user.sessions.is_none()), (Some(session_id()), true));
    assert_eq!(user.agent_info.map(|agent| agent.name), Some("Ann".to_owned()));

    let ended = active().ended(&Actor::System, Timestamp(5)).expect("open");
    assert_eq!(SessionEnded::from(&ended).time, Some(Timestamp(5)));
    let ended = session_object(&ended, Some(&agent_info()), None, true);
    let resumed = connected(Standing::User(Some(ended)));
    assert_eq!((resumed.session_id, resumed.agent_info), (None, None), "S1: resume opens none");
    assert!(resumed.session.is_some(), "S1: the latest ended one");

    let agent = serde_json::to_value(connected(Standing::Agent(vec![open]))).expect("JSON");
    assert_eq!((&agent["sessionId"], &agent["agentInfo"]), (&Value::Null, &Value::Null));
    assert_eq!(agent["sessions"][0]["sessionId"], "12");
}

#[test]
fn a_waiting_session_has_a_place_and_no_agent() {
    let place = kefu_queue::Place { position: 2, total: 7 };
    let object = session_object(&waiting(), None, Some(place), false);
    let object = serde_json::to_value(object).expect("JSON");
    assert_eq!((&object["agentInfo"], &object["position"]), (&Value::Null, &json!(2)));
    assert_eq!((&object["total"], &object["agentsOnline"]), (&json!(7), &json!(false)));
}

#[test]
fn a_refusal_carries_key_and_trace() {
    let error = FrameError {
        code: ErrorCode::RateLimited,
        message: "slow down".into(),
        client_msg_id: Some(message().client_msg_id),
        reference: None,
        is_malformed: false,
    };
    let frame = ErrorFrame::of_frame(&error, trace())
        .with_retry_after(std::time::Duration::from_micros(1_500));
    assert_eq!(
        payload(&ServerFrame::Error(frame)),
        json!({
            "code": "rate_limited", "message": "slow down", "retryAfterMs": 2,
            "clientMsgId": "k1", "traceId": "t1"
        })
    );
}

#[test]
fn ids_keep_every_digit() {
    let big = kefu_messaging::Message { msg_id: msg_id(i64::MAX), seq: Seq(3), ..message() };
    let push = pushed(&Push::Message { message: Arc::new(big), attempt: 1, own: false });
    assert_eq!((&push["msgId"], &push["seq"]), (&json!("9223372036854775807"), &json!(3)));
}
