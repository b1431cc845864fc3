//! `cg_chat_canned`.

use kefu_console::{CannedReply, Shelf};
use kefu_core::{AdminId, CannedId, Timestamp};
use sea_orm::entity::prelude::*;
use serde::Serialize;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_canned")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub admin_id: Option<String>,
    pub shortcut: String,
    pub title: String,
    pub content: String,
    pub update_time: i64,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The column `admin_id` of a shelf's replies.
#[must_use]
pub fn admin_id(shelf: &Shelf) -> Option<String> {
    match shelf {
        Shelf::Own(admin) => Some(admin.to_string()),
        Shelf::Team => None,
    }
}

impl TryFrom<Model> for CannedReply {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_canned", &model.id);
        let admin = row.nullable("admin_id", model.admin_id, AdminId::new)?;
        Ok(Self {
            id: row.value("id", CannedId::new(model.id))?,
            shelf: admin.map_or(Shelf::Team, Shelf::Own),
            shortcut: model.shortcut,
            title: model.title,
            content: model.content,
            update_time: Timestamp(model.update_time),
        })
    }
}

impl From<&CannedReply> for Model {
    fn from(reply: &CannedReply) -> Self {
        Self {
            id: reply.id.get(),
            admin_id: admin_id(&reply.shelf),
            shortcut: reply.shortcut.clone(),
            title: reply.title.clone(),
            content: reply.content.clone(),
            update_time: reply.update_time.0,
        }
    }
}
