//! Everything a node can say arrives as it was said.

use kefu_core::{Actor, NoteId};
use kefu_events::{How, RequeueReason};
use proptest::prelude::*;

use super::*;

fn node() -> impl Strategy<Value = NodeName> {
    "[A-Za-z0-9_.-]{1,12}".prop_map(|text| NodeName::new(text).unwrap())
}

fn user() -> impl Strategy<Value = UserId> {
    "[a-z0-9]{1,8}".prop_map(|text| UserId::new(text).unwrap())
}

fn admin() -> impl Strategy<Value = AdminId> {
    "[a-z0-9]{1,8}".prop_map(|text| AdminId::new(text).unwrap())
}

fn session() -> impl Strategy<Value = SessionId> {
    (1..=i64::MAX).prop_map(|raw| SessionId::new(raw).unwrap())
}

fn msg_id() -> impl Strategy<Value = MsgId> {
    (1..=i64::MAX).prop_map(|raw| MsgId::new(raw).unwrap())
}

fn actor() -> impl Strategy<Value = Actor> {
    prop_oneof![
        user().prop_map(Actor::User),
        admin().prop_map(Actor::Agent),
        admin().prop_map(Actor::Supervisor),
        Just(Actor::System),
    ]
}

fn status_of() -> impl Strategy<Value = MessageStatus> {
    prop::sample::select(vec![
        MessageStatus::Pending,
        MessageStatus::Failed,
        MessageStatus::Delivered,
        MessageStatus::Read,
    ])
}

fn event() -> impl Strategy<Value = Event> {
    let how = prop::sample::select(vec![How::Drain, How::Claim, How::Transfer]);
    let reason = prop::sample::select(vec![RequeueReason::AgentGone, RequeueReason::AgentOffline]);
    let base = || (session(), user(), any::<i64>());
    prop_oneof![
        base().prop_map(|(session_id, user_id, version)| Event::SessionOpened {
            session_id,
            user_id,
            version
        }),
        (base(), admin(), prop::option::of(admin()), how, actor()).prop_map(
            |((session_id, user_id, version), admin_id, from, how, actor)| {
                Event::SessionAssigned { session_id, user_id, admin_id, from, how, actor, version }
            }
        ),
        (base(), admin(), reason).prop_map(|((session_id, user_id, version), from, reason)| {
            Event::SessionRequeued { session_id, user_id, from, reason, version }
        }),
        (base(), prop::option::of(admin()), actor()).prop_map(
            |((session_id, user_id, version), admin_id, ended_by)| Event::SessionEnded {
                session_id,
                user_id,
                admin_id,
                ended_by,
                version
            }
        ),
        (base(), 1..=5_u8).prop_map(|((session_id, user_id, version), rating)| {
            Event::SessionRated { session_id, user_id, rating, version }
        }),
        (base(), msg_id(), any::<i64>(), prop::option::of(admin())).prop_map(
            |((session_id, user_id, version), msg_id, seq, admin_id)| Event::MessageStored {
                session_id,
                msg_id,
                seq: Seq(seq),
                user_id,
                admin_id,
                version
            }
        ),
        (admin(), any::<bool>(), any::<bool>()).prop_map(|(admin_id, online, live)| {
            Event::AgentChanged { admin_id, online, live }
        }),
        (session(), 1..=i64::MAX, admin()).prop_map(|(session_id, note_id, admin_id)| {
            Event::NoteAdded { session_id, note_id: NoteId::new(note_id).unwrap(), admin_id }
        }),
    ]
}

fn envelope() -> impl Strategy<Value = Envelope> {
    (1..=i64::MAX, any::<i64>(), node(), event()).prop_map(|(id, time, source, event)| {
        let trace_id = TraceId::new("t1").unwrap();
        let context = EventContext { now: Timestamp(time), source, trace_id };
        Envelope::stored(EventId::new(id).unwrap(), event.schema_version(), &context, event)
    })
}

fn message() -> impl Strategy<Value = Message> {
    let sender = prop_oneof![
        user().prop_map(Sender::User),
        admin().prop_map(Sender::Agent),
        Just(Sender::System),
        Just(Sender::Bot),
    ];
    let kind = prop::sample::select(vec![MessageType::Text, MessageType::Image]);
    (msg_id(), session(), any::<i64>(), sender, kind, any::<String>(), status_of()).prop_map(
        |(msg_id, session_id, seq, sender, msg_type, content, status)| Message {
            msg_id,
            session_id,
            seq: Seq(seq),
            sender,
            client_msg_id: ClientMsgId::new("客-1").unwrap(),
            msg_type,
            content,
            status,
            create_time: Timestamp(seq),
        },
    )
}

fn node_message() -> impl Strategy<Value = NodeMessage> {
    let person = prop_oneof![user().prop_map(Person::User), admin().prop_map(Person::Agent)];
    let push = prop_oneof![
        Just(Relayed::OfflineNotice),
        (session(), any::<bool>())
            .prop_map(|(session_id, is_typing)| Relayed::Typing { session_id, is_typing }),
        (session(), any::<i64>())
            .prop_map(|(session_id, seq)| Relayed::Read { session_id, seq: Seq(seq) }),
        (session(), "https://[a-z?=&#]{1,40}", "\\PC{0,40}", any::<i64>()).prop_map(
            |(session_id, url, title, time)| {
                let page = PageView::new(url, title, "zh-CN".into()).unwrap();
                Relayed::Page { session_id, page: Arc::new(page), time: Timestamp(time) }
            }
        ),
        (session(), msg_id(), any::<i64>(), status_of()).prop_map(
            |(session_id, msg_id, seq, status)| Relayed::PeerAck {
                session_id,
                msg_id,
                seq: Seq(seq),
                status
            }
        ),
    ];
    prop_oneof![
        (node(), prop::collection::btree_set(session(), 0..5), any::<bool>())
            .prop_map(|(node, sessions, board)| NodeMessage::Watching { node, sessions, board }),
        (envelope(), prop::option::of(message().prop_map(Arc::new)))
            .prop_map(|(envelope, message)| NodeMessage::Event { envelope, message }),
        (person, push, prop::option::of(Just(TraceId::new("t1").unwrap())))
            .prop_map(|(to, push, trace_id)| NodeMessage::Push { to, push, trace_id }),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_what_is_heard(from in node(), message in node_message()) {
        let text = encode(&from, &message).unwrap();
        prop_assert_eq!(decode(&text), Ok((from, Word::Message(message))));
    }

    #[test]
    fn noise_is_no_message(text in any::<String>()) {
        prop_assert!(decode(&text).is_err());
    }
}

#[test]
fn a_loss_is_told() {
    let node = NodeName::new("n1").unwrap();
    let text = encode_lost(&node).unwrap();
    assert_eq!(text, r#"{"schemaVersion":1,"from":"n1","body":"lost"}"#);
    assert_eq!(decode(&text), Ok((node, Word::Lost)));
}

#[test]
fn other_versions_are_told_from_noise() {
    let newer = r#"{"schemaVersion":2,"from":"n1","body":{"dream":{}}}"#;
    assert_eq!(decode(newer), Err(Unreadable::Version));
    let newer_event = r#"{"schemaVersion":1,"eventVersion":9,"from":"n1","body":{"event":{}}}"#;
    assert_eq!(decode(newer_event), Err(Unreadable::Version));
    let unknown = r#"{"schemaVersion":1,"from":"n1","body":{"dream":{}}}"#;
    assert_eq!(decode(unknown), Err(Unreadable::Malformed));
}
