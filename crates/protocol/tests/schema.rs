//! `docs/protocol.schema.json` is what the types say. `KEFU_UPDATE_SCHEMA=1` writes it anew.

#![expect(clippy::expect_used, reason = "a test stops at what it did not expect")]

use std::path::Path;

use kefu_protocol::{ClientFrame, ServerFrame, schema_document};
use serde_json::Value;

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
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.schema.json");
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
