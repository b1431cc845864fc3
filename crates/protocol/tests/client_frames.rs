//! What clients send: every event as `docs/protocol.md` writes it, and every way to be refused.

use kefu_core::{ClientMsgId, ErrorCode, PageLimit, Role, Seq, SessionId};
use kefu_messaging::{Draft, Window};
use kefu_protocol::{AckStatus, ClientFrame, FrameError, Inbound, Intent, Locale, Ref};
use serde_json::{Value, json};

const MAX: usize = 500;
const IMAGE: &str = "/uploads/chat/20260128/000000000000000000000000000000ff.png";

fn read(frame: &Value) -> Result<Inbound, FrameError> {
    Inbound::parse(&frame.to_string(), MAX)
}

fn accepted(event: &str, payload: impl Into<Value>) -> ClientFrame {
    let frame = json!({ "event": event, "payload": payload.into() });
    read(&frame).unwrap_or_else(|error| panic!("{frame}: {error}")).frame
}

fn refused(event: &str, payload: impl Into<Value>) -> FrameError {
    let frame = json!({ "event": event, "payload": payload.into() });
    let error = read(&frame).err().unwrap_or_else(|| panic!("{frame} was accepted"));
    assert!(!error.is_malformed, "{frame}: the envelope is fine");
    error
}

/// The frames with the fields of spec A (section 4) only, and one of each extension.
fn samples() -> Vec<(&'static str, Value)> {
    vec![
        ("chat.connect", json!({ "token": "t", "source": "web" })),
        (
            "chat.connect",
            json!({
                "token": "t", "source": "web", "intent": "resume", "sessionId": "9007199254740993",
                "lastSeq": 7, "locale": "zh-CN"
            }),
        ),
        ("chat.connect", json!({ "token": "t", "source": "", "lastSeqs": { "12": 3, "13": 0 } })),
        (
            "chat.message.send",
            json!({ "sessionId": "12", "msgType": "text", "content": "你好", "clientMsgId": "k1" }),
        ),
        ("chat.message.send", json!({ "msgType": "image", "content": IMAGE, "clientMsgId": "k2" })),
        ("chat.message.ack", json!({ "msgId": "99" })),
        ("chat.message.ack", json!({ "msgId": "99", "status": "delivered", "cumulative": true })),
        ("chat.typing", json!({ "sessionId": "12", "isTyping": true })),
        ("chat.session.end", json!({ "sessionId": "12" })),
        ("chat.session.rate", json!({ "sessionId": "12", "rating": 5, "content": "好\n" })),
        ("chat.ping", json!({})),
        ("chat.agent.online", json!({ "maxSessions": 10 })),
        ("chat.agent.offline", json!({})),
        ("chat.agent.offline", json!({ "requeue": true })),
        ("chat.session.transfer", json!({ "sessionId": "12", "targetAdminId": "a2" })),
        (
            "chat.session.transfer",
            json!({ "sessionId": "12", "targetAdminId": "a2", "note": "VIP" }),
        ),
        ("chat.history", json!({ "sessionId": "12", "afterSeq": 0, "limit": 50 })),
        ("chat.history", json!({ "sessionId": "12", "beforeSeq": 51, "limit": 1 })),
        ("chat.history", json!({ "sessionId": "12" })),
        ("chat.queue.list", json!({})),
        ("chat.session.claim", json!({ "sessionId": "12" })),
        ("chat.agent.list", json!({})),
        ("chat.session.watch", json!({ "sessionId": "12" })),
        ("chat.session.unwatch", json!({ "sessionId": "12" })),
        ("chat.board", json!({})),
        ("chat.board", json!({ "subscribe": false })),
        ("chat.assignment.explain", json!({ "sessionId": "12" })),
        ("chat.page", json!({ "url": "HTTPS://shop.test/?a=b#c" })),
        ("chat.page", json!({ "url": "http://a.b", "title": "商品", "language": "zh-CN" })),
        ("chat.sessions.list", json!({ "scope": "visitor", "sessionId": "12" })),
        (
            "chat.sessions.list",
            json!({ "scope": "mine", "query": "退款", "cursor": "9", "limit": 1 }),
        ),
        ("chat.sessions.list", json!({ "scope": "all" })),
        ("chat.note.add", json!({ "sessionId": "12", "content": "急\n", "clientMsgId": "n1" })),
        ("chat.note.add", json!({ "sessionId": "12", "content": "x" })),
        ("chat.note.list", json!({ "sessionId": "12", "before": "9", "limit": 7 })),
        ("chat.note.list", json!({ "sessionId": "12" })),
        ("chat.canned.list", json!({})),
        ("chat.canned.list", json!({ "query": "/退", "cursor": "50", "limit": 50 })),
        ("chat.canned.put", json!({ "shortcut": "退款", "content": "好\n的", "scope": "mine" })),
        (
            "chat.canned.put",
            json!({ "id": "4", "shortcut": "hi", "title": "你好", "content": "x", "scope": "team" }),
        ),
        ("chat.canned.delete", json!({ "id": "4" })),
    ]
}

#[test]
fn every_event_is_read_and_written_alike() {
    for (event, payload) in samples() {
        let frame = accepted(event, payload.clone());
        assert_eq!(frame.event(), event);
        let text = frame.encode(Some("r"));
        let again = Inbound::parse(&text, MAX).expect("what we write we read");
        assert_eq!(again.frame, frame);
        assert_eq!(again.reference.as_ref().map(Ref::as_str), Some("r"));
        // What the client sent is what a test client would send, defaults aside.
        let written: Value = serde_json::from_str(&text).expect("JSON");
        for (name, value) in payload.as_object().expect("an object") {
            assert_eq!(&written["payload"][name], value, "{event} {name}");
        }
    }
}

#[test]
fn every_event_has_a_sample() {
    for event in ClientFrame::EVENTS {
        assert!(samples().iter().any(|(sample, _)| sample == event), "{event}");
    }
}

#[test]
fn what_may_be_left_out_has_the_documented_default() {
    let ClientFrame::Connect(connect) = accepted("chat.connect", json!({ "token": "t" })) else {
        panic!("a connect")
    };
    assert_eq!((connect.intent, connect.source.as_str()), (Intent::Consult, ""));
    assert_eq!((connect.positions(Role::User).len(), connect.language()), (0, Locale::En));
    let ClientFrame::Ack(ack) = accepted("chat.message.ack", json!({ "msgId": "1" })) else {
        panic!("an ack")
    };
    assert_eq!((ack.status, ack.cumulative), (AckStatus::Read, false));
    let ClientFrame::History(history) = accepted("chat.history", json!({ "sessionId": "1" }))
    else {
        panic!("a history")
    };
    assert_eq!(history.window, Window::Before(Seq(i64::MAX)), "the latest page");
    assert_eq!(history.limit, PageLimit::MAX);
}

#[test]
fn last_seq_without_session_is_no_position() {
    let frame = accepted("chat.connect", json!({ "token": "t", "lastSeq": 3 }));
    let ClientFrame::Connect(connect) = frame else { panic!("a connect") };
    assert!(connect.positions(Role::User).is_empty(), "M4");
}

#[test]
fn a_position_is_the_users_or_the_agents() {
    let payload = json!({ "token": "t", "sessionId": "9", "lastSeq": 3, "lastSeqs": { "12": 4 } });
    let ClientFrame::Connect(connect) = accepted("chat.connect", payload) else {
        panic!("a connect")
    };
    let id = |raw| SessionId::new(raw).expect("valid");
    assert_eq!(connect.positions(Role::User), [(id(9), Seq(3))].into());
    assert_eq!(connect.positions(Role::Agent), [(id(12), Seq(4))].into());
}

#[test]
fn null_is_absent_and_unknown_fields_are_ignored() {
    accepted("chat.ping", json!({ "game": [1, { "x": null }] }));
    let payload = json!({ "token": "t", "source": null, "lastSeqs": null, "userId": "somebody" });
    accepted("chat.connect", payload);
    for frame in [json!({ "event": "chat.ping" }), json!({ "event": "chat.ping", "payload": null })]
    {
        assert!(read(&frame).is_ok(), "{frame}");
    }
}

#[test]
fn an_image_is_reduced_to_its_path() {
    let content = format!("https://chat.example{IMAGE}?exp=1&sig=x");
    let payload = json!({ "msgType": "image", "content": content, "clientMsgId": "k" });
    let ClientFrame::Send(send) = accepted("chat.message.send", payload) else { panic!("a send") };
    assert_eq!(send.draft, Draft::Image(IMAGE.parse().expect("a path")), "M1");
}

#[test]
fn what_is_not_the_envelope_counts_as_malformed() {
    let long_ref = "r".repeat(65);
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "hello",
        "{",
        "[]",
        "null",
        "\"chat.ping\"",
        r#"{"payload":{}}"#,
        r#"{"event":1}"#,
        r#"{"event":"chat.ping","payload":[]}"#,
        r#"{"event":"chat.ping","payload":"x"}"#,
        r#"{"event":"chat.ping","ref":1}"#,
        r#"{"event":"chat.ping"} x"#,
        "{\"event\":\"chat.ping\",\"ref\":\"\\ud800\"}",
        &format!(r#"{{"event":"chat.ping","ref":"{long_ref}"}}"#),
        &deep,
    ] {
        let error = Inbound::parse(text, MAX).expect_err(text);
        assert!(error.is_malformed, "{text}");
        assert_eq!(error.code, ErrorCode::BadRequest, "{text}");
    }
}

#[test]
fn other_namespaces_and_unknown_names_are_unknown_events() {
    for event in ["game.start", "chat.nope", "chat", "", "CHAT.PING", "chat.note.burn"] {
        for payload in [json!({}), json!(7)] {
            let frame = json!({ "event": event, "payload": payload, "ref": "r1" });
            let error = read(&frame).expect_err(event);
            assert_eq!(error.code, ErrorCode::UnknownEvent, "CC-12: {event}");
            assert!(!error.is_malformed);
            assert_eq!(error.reference.as_ref().map(Ref::as_str), Some("r1"));
        }
    }
}

#[test]
fn a_missing_token_is_a_failed_login() {
    for payload in [json!({}), json!({ "token": "" }), json!({ "token": 1, "lastSeq": "x" })] {
        assert_eq!(refused("chat.connect", payload).code, ErrorCode::Unauthenticated);
    }
}

#[test]
fn a_bad_field_is_named_and_its_content_is_not_repeated() {
    let secret = "s3cret\u{7}";
    let send = |field: &str, value: Value| {
        let mut payload =
            json!({ "sessionId": "1", "msgType": "text", "content": "x", "clientMsgId": "k" });
        payload[field] = value;
        ("chat.message.send", field.to_owned(), payload)
    };
    let other = |event, field: &str, payload| (event, field.to_owned(), payload);
    for (event, field, payload) in [
        send("sessionId", json!(secret)),
        send("sessionId", json!(12)),
        send("sessionId", json!("-1")),
        send("msgType", json!(secret)),
        send("msgType", Value::Null),
        send("content", json!(["s3cret"])),
        send("content", json!(secret)),
        send("clientMsgId", json!(secret)),
        send("clientMsgId", json!("")),
        send("clientMsgId", json!("k".repeat(129))),
        send("clientMsgId", Value::Null),
        other("chat.connect", "source", json!({ "token": "t", "source": "s".repeat(129) })),
        other("chat.connect", "source", json!({ "token": "t", "source": "a\nb" })),
        other("chat.connect", "locale", json!({ "token": "t", "locale": "s".repeat(129) })),
        other("chat.connect", "intent", json!({ "token": "t", "intent": "s3cret" })),
        other("chat.connect", "lastSeq", json!({ "token": "t", "lastSeq": -1 })),
        other("chat.connect", "lastSeq", json!({ "token": "t", "lastSeq": 1.5 })),
        other("chat.connect", "lastSeqs", json!({ "token": "t", "lastSeqs": { "s3cret": 1 } })),
        other("chat.connect", "lastSeqs", json!({ "token": "t", "lastSeqs": { "1": "1" } })),
        other("chat.message.ack", "msgId", json!({})),
        other("chat.message.ack", "status", json!({ "msgId": "1", "status": "failed" })),
        other("chat.message.ack", "cumulative", json!({ "msgId": "1", "cumulative": 1 })),
        other("chat.typing", "isTyping", json!({ "sessionId": "1" })),
        other("chat.session.end", "sessionId", json!({ "sessionId": "99999999999999999999" })),
        other("chat.session.rate", "rating", json!({ "sessionId": "1", "rating": 0 })),
        other("chat.session.rate", "rating", json!({ "sessionId": "1", "rating": 300 })),
        other("chat.agent.online", "maxSessions", json!({ "maxSessions": -1 })),
        other("chat.agent.online", "maxSessions", json!({ "maxSessions": 4_294_967_296_u64 })),
        other("chat.agent.offline", "requeue", json!({ "requeue": "yes" })),
        other(
            "chat.session.transfer",
            "targetAdminId",
            json!({ "sessionId": "1", "targetAdminId": "a b" }),
        ),
        other("chat.session.watch", "sessionId", json!({})),
        other("chat.board", "subscribe", json!({ "subscribe": 1 })),
        other("chat.assignment.explain", "sessionId", json!({ "sessionId": 12 })),
        other("chat.page", "url", json!({})),
        other("chat.page", "url", json!({ "url": "javascript:s3cret" })),
        other("chat.page", "url", json!({ "url": "https://" })),
        other("chat.page", "url", json!({ "url": "//shop.test" })),
        other("chat.page", "url", json!({ "url": format!("https://{}", "x".repeat(1_017)) })),
        other("chat.page", "title", json!({ "url": "https://a.b", "title": "t".repeat(257) })),
        other("chat.page", "language", json!({ "url": "https://a.b", "language": "a\nb" })),
        other("chat.sessions.list", "scope", json!({})),
        other("chat.sessions.list", "scope", json!({ "scope": "s3cret" })),
        other("chat.sessions.list", "sessionId", json!({ "scope": "visitor" })),
        other("chat.sessions.list", "query", json!({ "scope": "mine", "query": "?!" })),
        other("chat.sessions.list", "query", json!({ "scope": "mine", "query": "q".repeat(129) })),
        other("chat.sessions.list", "cursor", json!({ "scope": "mine", "cursor": "s3cret" })),
        other("chat.sessions.list", "limit", json!({ "scope": "mine", "limit": 51 })),
        other("chat.note.add", "sessionId", json!({ "content": "x" })),
        other("chat.note.add", "content", json!({ "sessionId": "1" })),
        other("chat.note.add", "content", json!({ "sessionId": "1", "content": secret })),
        other(
            "chat.note.add",
            "clientMsgId",
            json!({ "sessionId": "1", "content": "x", "clientMsgId": "k".repeat(129) }),
        ),
        other("chat.note.list", "before", json!({ "sessionId": "1", "before": 7 })),
        other("chat.note.list", "limit", json!({ "sessionId": "1", "limit": 51 })),
        other("chat.canned.list", "query", json!({ "query": "q".repeat(129) })),
        other("chat.canned.list", "cursor", json!({ "cursor": "s3cret" })),
        other("chat.canned.list", "limit", json!({ "limit": 0 })),
        other("chat.canned.put", "shortcut", json!({ "content": "x", "scope": "mine" })),
        other(
            "chat.canned.put",
            "shortcut",
            json!({ "shortcut": "s3cret s3cret", "content": "x", "scope": "mine" }),
        ),
        other("chat.canned.put", "scope", json!({ "shortcut": "hi", "content": "x" })),
        other(
            "chat.canned.put",
            "scope",
            json!({ "shortcut": "hi", "content": "x", "scope": "s3cret" }),
        ),
        other(
            "chat.canned.put",
            "title",
            json!({ "shortcut": "h", "content": "x", "scope": "team", "title": "t".repeat(129) }),
        ),
        other("chat.canned.delete", "id", json!({ "id": 4 })),
        other("chat.history", "limit", json!({ "sessionId": "1", "limit": 51 })),
        other("chat.history", "limit", json!({ "sessionId": "1", "limit": 0 })),
        other(
            "chat.history",
            "position",
            json!({ "sessionId": "1", "afterSeq": 1, "beforeSeq": 2 }),
        ),
    ] {
        let error = refused(event, payload);
        assert_eq!(error.code, ErrorCode::BadRequest, "{event} {field}: {error}");
        assert!(error.message.contains(&field), "{event} {field}: {error}");
        assert!(!error.message.contains("s3cret"), "{event} {field}: {error}");
    }
}

#[test]
fn content_has_codes_of_its_own() {
    let text =
        |content: String| json!({ "msgType": "text", "content": content, "clientMsgId": "k" });
    let image =
        |content: String| json!({ "msgType": "image", "content": content, "clientMsgId": "k" });
    let rate = |content: String| json!({ "sessionId": "1", "rating": 1, "content": content });
    let note = |note: String| json!({ "sessionId": "1", "targetAdminId": "a", "note": note });
    let private = |content: String| json!({ "sessionId": "1", "content": content });
    let canned = |content: String| json!({ "shortcut": "hi", "scope": "mine", "content": content });
    accepted("chat.message.send", text("😀".repeat(500)));
    accepted("chat.note.add", private("好".repeat(500)));
    accepted("chat.canned.put", canned("好".repeat(500)));
    accepted("chat.session.rate", rate("好".repeat(500)));
    accepted("chat.session.transfer", note("好".repeat(500)));
    for (event, payload, code) in [
        ("chat.message.send", text("😀".repeat(501)), ErrorCode::ContentTooLong),
        ("chat.message.send", text(" \n\u{3000}".into()), ErrorCode::ContentEmpty),
        ("chat.message.send", text("a\u{0}b".into()), ErrorCode::BadRequest),
        ("chat.message.send", image("x".repeat(2_049)), ErrorCode::ContentTooLong),
        ("chat.message.send", image(String::new()), ErrorCode::ContentEmpty),
        ("chat.message.send", image("javascript:alert(1)".into()), ErrorCode::BadRequest),
        ("chat.session.rate", rate("好".repeat(501)), ErrorCode::ContentTooLong),
        ("chat.session.transfer", note("好".repeat(501)), ErrorCode::ContentTooLong),
        ("chat.note.add", private("好".repeat(501)), ErrorCode::ContentTooLong),
        ("chat.note.add", private("\u{3000}\n".into()), ErrorCode::ContentEmpty),
        ("chat.canned.put", canned("好".repeat(501)), ErrorCode::ContentTooLong),
        ("chat.canned.put", canned(" ".into()), ErrorCode::ContentEmpty),
    ] {
        assert_eq!(refused(event, payload).code, code, "A4, M1: {event}");
    }
}

#[test]
fn the_configured_length_is_the_limit() {
    let frame = json!({ "event": "chat.message.send",
        "payload": { "msgType": "text", "content": "123456", "clientMsgId": "k" } });
    assert!(Inbound::parse(&frame.to_string(), 6).is_ok());
    let error = Inbound::parse(&frame.to_string(), 5).expect_err("too long");
    assert_eq!(error.code, ErrorCode::ContentTooLong);
}

#[test]
fn a_refused_send_keeps_its_key_and_its_label() {
    for payload in [
        json!({ "clientMsgId": "k1" }),
        json!({ "clientMsgId": "k1", "sessionId": 1 }),
        json!({ "clientMsgId": "k1", "msgType": "text", "content": "x".repeat(501) }),
        json!({ "clientMsgId": "k1", "msgType": "video", "content": "x" }),
    ] {
        let frame = json!({ "event": "chat.message.send", "payload": payload, "ref": "r1" });
        let error = read(&frame).expect_err("bad");
        assert_eq!(error.client_msg_id.as_ref().map(ClientMsgId::as_str), Some("k1"), "{frame}");
        assert_eq!(error.reference.as_ref().map(Ref::as_str), Some("r1"), "{frame}");
    }
    let frame = json!({ "event": "chat.typing", "payload": { "clientMsgId": "k1" } });
    assert_eq!(read(&frame).expect_err("bad").client_msg_id, None, "only sends have a key");
}

#[test]
fn tokens_are_not_printed() {
    let frame = accepted("chat.connect", json!({ "token": "s3cret" }));
    assert!(!format!("{frame:?}").contains("s3cret"));
}
