//! `cg_chat_message`.

use kefu_core::{ClientMsgId, MsgId, Seq, SessionId, Timestamp};
use kefu_messaging::{Message, MessageStatus, MessageType, Sender};
use sea_orm::entity::prelude::*;
use serde::Serialize;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row, without the generated alias of its key.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_message")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub msg_id: i64,
    pub session_id: i64,
    pub seq: i64,
    pub sender_type: String,
    pub sender_id: String,
    pub client_msg_id: String,
    pub msg_type: String,
    pub content: String,
    pub status: String,
    pub create_time: i64,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Message {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_message", &model.msg_id);
        let sender = Sender::from_texts(&model.sender_type, &model.sender_id);
        Ok(Self {
            msg_id: row.value("msg_id", MsgId::new(model.msg_id))?,
            session_id: row.value("session_id", SessionId::new(model.session_id))?,
            seq: Seq(model.seq),
            sender: row.known("sender_id", sender)?,
            client_msg_id: row.value("client_msg_id", ClientMsgId::new(&model.client_msg_id))?,
            msg_type: row.known("msg_type", MessageType::from_text(&model.msg_type))?,
            content: model.content,
            status: row.known("status", MessageStatus::from_text(&model.status))?,
            create_time: Timestamp(model.create_time),
        })
    }
}

impl From<&Message> for Model {
    fn from(message: &Message) -> Self {
        Self {
            msg_id: message.msg_id.get(),
            session_id: message.session_id.get(),
            seq: message.seq.0,
            sender_type: message.sender.kind().to_owned(),
            sender_id: message.sender.id().to_owned(),
            client_msg_id: message.client_msg_id.to_string(),
            msg_type: message.msg_type.as_str().to_owned(),
            content: message.content.clone(),
            status: message.status.as_str().to_owned(),
            create_time: message.create_time.0,
        }
    }
}
