//! Nothing that a client sends makes reading panic, and every refusal can be written as a frame.
//! A failure prints the input it was reduced to.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

use kefu_core::TraceId;
use kefu_protocol::{ClientFrame, ErrorFrame, Inbound, Outbound, Ref, ServerFrame};
use proptest::prelude::*;
use serde_json::{Map, Value};

const WORDS: [&str; 9] =
    ["text", "image", "read", "delivered", "consult", "resume", "12", "a1", "k"];
const FIELDS: [&str; 30] = [
    "token",
    "source",
    "intent",
    "sessionId",
    "lastSeq",
    "lastSeqs",
    "locale",
    "msgType",
    "content",
    "clientMsgId",
    "msgId",
    "status",
    "cumulative",
    "isTyping",
    "rating",
    "maxSessions",
    "requeue",
    "targetAdminId",
    "note",
    "limit",
    "before",
    "query",
    "cursor",
    "id",
    "shortcut",
    "title",
    "scope",
    "subscribe",
    "url",
    "language",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0..6_i64).prop_map(Value::from),
        proptest::sample::select(&WORDS[..]).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[0-9]{1,20}|.{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An envelope whose event is mostly ours and whose fields mostly have our names.
fn frame() -> impl Strategy<Value = Value> {
    let event = prop_oneof![
        4 => proptest::sample::select(ClientFrame::EVENTS).prop_map(Value::from),
        1 => value(),
    ];
    let name = proptest::sample::select(&FIELDS[..]).prop_map(str::to_owned);
    let payload = proptest::collection::btree_map(name, value(), 0..8);
    (event, payload, proptest::option::of(value())).prop_map(|(event, payload, label)| {
        let mut members = Map::new();
        members.insert("event".into(), event);
        members.insert("payload".into(), Value::Object(payload.into_iter().collect()));
        if let Some(label) = label {
            members.insert("ref".into(), label);
        }
        Value::Object(members)
    })
}

/// Accepted frames can be sent again; refusals can be answered and stay one line without markup of ours.
fn check(text: &str) -> Result<(), TestCaseError> {
    match Inbound::parse(text, 500) {
        Ok(inbound) => {
            let label = inbound.reference.as_ref().map(Ref::as_str);
            let again = Inbound::parse(&inbound.frame.encode(label), 500);
            prop_assert_eq!(again, Ok(inbound));
        }
        Err(error) => {
            prop_assert!(!error.message.is_empty() && error.message.len() < 100);
            let label = error.reference.clone();
            let trace = TraceId::new("t").expect("valid");
            let frame = ServerFrame::Error(ErrorFrame::of_frame(&error, trace));
            let answer = frame.encode(label.as_ref().map(Ref::as_str));
            let read = Outbound::parse(&answer).expect("what we write we read");
            prop_assert_eq!(read, Outbound { reference: label, frame });
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in ".{0,64}") {
        check(&text)?;
    }

    #[test]
    fn any_json(value in value()) {
        check(&value.to_string())?;
    }

    #[test]
    fn any_frame(frame in frame()) {
        check(&frame.to_string())?;
    }

    #[test]
    fn any_cut_of_a_frame(frame in frame(), share in 0.0..1.0_f64) {
        let text: Vec<char> = frame.to_string().chars().collect();
        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a share of a short length")]
        let end = (text.len() as f64 * share) as usize;
        check(&text[..end].iter().collect::<String>())?;
    }
}
