//! `cg_chat_upload`.

use kefu_core::{AdminId, Person, SessionId, Timestamp, UserId};
use kefu_upload::{ImageFormat, UploadRow};
use sea_orm::entity::prelude::*;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "cg_chat_upload")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub path: String,
    pub session_id: i64,
    pub uploader: String,
    pub mime: String,
    pub size: i64,
    pub sha256: Vec<u8>,
    pub width: i64,
    pub height: i64,
    pub created_at: i64,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for UploadRow {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_upload", &model.path);
        Ok(Self {
            path: row.value("path", model.path.parse())?,
            session_id: row.value("session_id", SessionId::new(model.session_id))?,
            uploader: row.known("uploader", person(&model.uploader))?,
            mime: row.known("mime", ImageFormat::from_mime(&model.mime))?,
            size: row.value("size", model.size.try_into())?,
            sha256: row.value("sha256", model.sha256.try_into())?,
            width: row.value("width", model.width.try_into())?,
            height: row.value("height", model.height.try_into())?,
            created_at: Timestamp(model.created_at),
        })
    }
}

/// The person of [`Person`]'s text form.
fn person(text: &str) -> Option<Person> {
    match text.split_once(':')? {
        ("user", id) => UserId::new(id).ok().map(Person::User),
        ("agent", id) => AdminId::new(id).ok().map(Person::Agent),
        _ => None,
    }
}

impl From<&UploadRow> for Model {
    fn from(row: &UploadRow) -> Self {
        Self {
            path: row.path.to_string(),
            session_id: row.session_id.get(),
            uploader: row.uploader.to_string(),
            mime: row.mime.mime().to_owned(),
            // A larger file than this cannot exist; it would be refused by the column's CHECK.
            size: i64::try_from(row.size).unwrap_or(-1),
            sha256: row.sha256.to_vec(),
            width: row.width.into(),
            height: row.height.into(),
            created_at: row.created_at.0,
        }
    }
}
