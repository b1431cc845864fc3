//! `cg_chat_note`.

use kefu_console::Note;
use kefu_core::{AdminId, ClientMsgId, NoteId, SessionId, Timestamp};
use sea_orm::entity::prelude::*;
use serde::Serialize;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_note")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub note_id: i64,
    pub session_id: i64,
    pub admin_id: String,
    pub admin_name: String,
    pub client_msg_id: Option<String>,
    pub content: String,
    pub create_time: i64,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Note {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_note", &model.note_id);
        Ok(Self {
            id: row.value("note_id", NoteId::new(model.note_id))?,
            session_id: row.value("session_id", SessionId::new(model.session_id))?,
            admin_id: row.value("admin_id", AdminId::new(model.admin_id))?,
            name: model.admin_name,
            key: row.nullable("client_msg_id", model.client_msg_id, ClientMsgId::new)?,
            content: model.content,
            time: Timestamp(model.create_time),
        })
    }
}

impl From<&Note> for Model {
    fn from(note: &Note) -> Self {
        Self {
            note_id: note.id.get(),
            session_id: note.session_id.get(),
            admin_id: note.admin_id.to_string(),
            admin_name: note.name.clone(),
            client_msg_id: note.key.as_ref().map(ToString::to_string),
            content: note.content.clone(),
            create_time: note.time.0,
        }
    }
}
