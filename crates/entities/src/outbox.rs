//! `cg_chat_outbox`.

use kefu_core::{EventId, NodeName, Timestamp, TraceId};
use kefu_events::{Envelope, EventContext};
use sea_orm::entity::prelude::*;
use serde::Serialize;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_outbox")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub event_type: String,
    pub schema_version: i32,
    pub time: i64,
    pub source: String,
    pub trace_id: String,
    pub key: String,
    pub payload: String,
    pub confirmed_at: Option<i64>,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Envelope {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_outbox", &model.id);
        let context = EventContext {
            now: Timestamp(model.time),
            source: row.value("source", NodeName::new(&model.source))?,
            trace_id: row.value("trace_id", TraceId::new(&model.trace_id))?,
        };
        Ok(Self::stored(
            row.value("id", EventId::new(model.id))?,
            row.value("schema_version", model.schema_version.try_into())?,
            &context,
            row.value("payload", serde_json::from_str(&model.payload))?,
        ))
    }
}

impl TryFrom<&Envelope> for Model {
    type Error = serde_json::Error;

    /// A row that nobody has confirmed yet.
    fn try_from(envelope: &Envelope) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id: envelope.id.get(),
            event_type: envelope.event.kind().to_owned(),
            schema_version: envelope.schema_version.into(),
            time: envelope.time.0,
            source: envelope.source.to_string(),
            trace_id: envelope.trace_id.to_string(),
            key: envelope.event.key(),
            payload: serde_json::to_string(&envelope.event)?,
            confirmed_at: None,
        })
    }
}
