//! The JSON Schema of the whole contract, from the types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::client::ClientFrame;
use crate::http::{DemoTokenAnswer, DemoTokenRequest, ErrorBody, MessagesPage, UploadAnswer};
use crate::server::ServerFrame;

/// JSON Schema (2020-12) of every frame and body: `client` and `server` hold the frames by event name, `http`
/// the bodies, `$defs` what they share. `docs/protocol.schema.json` is this, printed.
///
/// Fields that a client may leave out are not required; fields that the server always sends are.
#[must_use]
pub fn document() -> Value {
    let mut read = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut written = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let client = frames::<ClientFrame>(&mut read);
    let server = frames::<ServerFrame>(&mut written);
    let http = json!({
        "POST /api/v1/uploads": written.subschema_for::<UploadAnswer>(),
        "GET /api/v1/sessions/{id}/messages": written.subschema_for::<MessagesPage>(),
        "POST /demo/token (request)": read.subschema_for::<DemoTokenRequest>(),
        "POST /demo/token": written.subschema_for::<DemoTokenAnswer>(),
        "error": written.subschema_for::<ErrorBody>(),
    });
    let mut definitions = written.take_definitions(true);
    definitions.extend(read.take_definitions(true));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kefu wire contract, version 1",
        "description": "Frames by event name under `client` (sent by clients) and `server`; HTTP bodies under `http`.",
        "client": client,
        "server": server,
        "http": http,
        "$defs": definitions,
    })
}

/// The frames of one direction by event name, each as the whole envelope.
fn frames<F: JsonSchema>(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let schema = F::json_schema(generator);
    let variants = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    variants.filter_map(|frame| Some((event_of(frame)?, labelled(frame)))).collect()
}

fn event_of(frame: &Value) -> Option<String> {
    frame.pointer("/properties/event/const")?.as_str().map(str::to_owned)
}

/// The frame with the label that any frame may carry.
fn labelled(frame: &Value) -> Value {
    let mut schema = Schema::try_from(frame.clone()).unwrap_or_default();
    let label = json!({
        "description": "The client's own label of a frame, carried back by the direct answer to it.",
        "type": "string",
        "maxLength": 64,
    });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("ref".to_owned(), label);
    }
    schema.to_value()
}
