//! `docs/protocol.schema.json` is what the types say. `KEFU_UPDATE_SCHEMA=1` writes it anew.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::path::{Path, PathBuf};

use kefu_core::ErrorCode;
use kefu_protocol::{ClientFrame, CloseCode, ServerFrame, schema_document};
use serde_json::Value;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn keys(document: &Value, part: &str) -> Vec<String> {
    let part = document.get(part).and_then(Value::as_object).expect("an object");
    part.keys().cloned().collect()
}

fn sorted(events: &[&str]) -> Vec<String> {
    let mut events: Vec<_> = events.iter().map(|event| (*event).to_owned()).collect();
    events.sort();
    events
}

#[test]
fn the_schema_file_is_what_the_types_say() {
    let file = docs("protocol.schema.json");
    let generated = schema_document();
    if std::env::var("KEFU_UPDATE_SCHEMA").is_ok_and(|value| value == "1") {
        let text = serde_json::to_string_pretty(&generated).expect("JSON");
        std::fs::write(&file, text + "\n").expect("docs can be written");
    }
    let stored = std::fs::read_to_string(&file).expect("docs/protocol.schema.json");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(stored, generated, "run the test `schema` once with KEFU_UPDATE_SCHEMA=1");
}

#[test]
fn every_event_is_described() {
    let document = schema_document();
    let (mut client, mut server) = (keys(&document, "client"), keys(&document, "server"));
    client.sort();
    server.sort();
    assert_eq!(client, sorted(ClientFrame::EVENTS));
    assert_eq!(server, sorted(ServerFrame::EVENTS));
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = schema_document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        assert!(target.is_some(), "{reference}");
    }
}

#[test]
fn the_words_name_everything() {
    let words = std::fs::read_to_string(docs("protocol.md")).expect("docs/protocol.md");
    let events =
        ClientFrame::EVENTS.iter().chain(ServerFrame::EVENTS).map(|event| (*event).to_owned());
    let codes = ErrorCode::ALL.map(|code| code.as_str().to_owned());
    for name in events.chain(codes) {
        assert!(words.contains(&format!("| `{name}`")), "{name} has no row in docs/protocol.md");
    }
    for close in CloseCode::ALL {
        assert!(words.contains(&format!("| {} |", close.code())), "{close}");
    }
    for code in ErrorCode::ALL {
        let row = format!("| `{code}` | {} |", kefu_protocol::http::status(code));
        assert!(words.contains(&row), "{row}");
    }
}
