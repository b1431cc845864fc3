//! `cg_chat_session`.

use kefu_core::{AdminId, Balance, MsgId, Seq, SessionId, Timestamp, UserId};
use kefu_session::{Rating, Session, Status, UserProfile};
use sea_orm::entity::prelude::*;
use serde::Serialize;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_session")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub user_id: String,
    pub user_name: String,
    pub user_avatar: Option<String>,
    pub user_vip: Option<bool>,
    pub status: i16,
    pub admin_id: Option<String>,
    pub source: String,
    pub balance: Option<i64>,
    pub priority: i64,
    pub last_seq: i64,
    pub last_msg_id: Option<i64>,
    pub version: i64,
    pub started_at: i64,
    pub queued_at: i64,
    pub assigned_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub ended_by: Option<String>,
    pub rating: Option<i16>,
    pub rating_content: Option<String>,
    pub rating_time: Option<i64>,
    pub noticed_at: Option<i64>,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Session {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_session", &model.id);
        let rating = rating(&row, &model)?;
        Ok(Self {
            id: row.value("id", SessionId::new(model.id))?,
            user: UserProfile {
                user_id: row.value("user_id", UserId::new(&model.user_id))?,
                name: model.user_name,
                avatar: model.user_avatar,
                vip: model.user_vip,
            },
            status: row.known("status", Status::from_code(model.status))?,
            admin_id: row.nullable("admin_id", model.admin_id, AdminId::new)?,
            source: model.source,
            balance: model.balance.map(Balance),
            priority: model.priority,
            last_seq: Seq(model.last_seq),
            last_msg_id: row.nullable("last_msg_id", model.last_msg_id, MsgId::new)?,
            version: model.version,
            started_at: Timestamp(model.started_at),
            queued_at: Timestamp(model.queued_at),
            assigned_at: model.assigned_at.map(Timestamp),
            ended_at: model.ended_at.map(Timestamp),
            ended_by: row.nullable("ended_by", model.ended_by, |text| text.parse())?,
            rating,
            noticed_at: model.noticed_at.map(Timestamp),
        })
    }
}

fn rating(row: &Reading, model: &Model) -> Result<Option<Rating>, UnreadableRow> {
    let Some(score) = model.rating else { return Ok(None) };
    Ok(Some(Rating {
        score: row.value("rating", u8::try_from(score))?,
        comment: row.known("rating_content", model.rating_content.clone())?,
        time: Timestamp(row.known("rating_time", model.rating_time)?),
    }))
}

impl From<&Session> for Model {
    fn from(session: &Session) -> Self {
        let rating = session.rating.as_ref();
        Self {
            id: session.id.get(),
            user_id: session.user.user_id.to_string(),
            user_name: session.user.name.clone(),
            user_avatar: session.user.avatar.clone(),
            user_vip: session.user.vip,
            status: session.status.code(),
            admin_id: session.admin_id.as_ref().map(ToString::to_string),
            source: session.source.clone(),
            balance: session.balance.map(|balance| balance.0),
            priority: session.priority,
            last_seq: session.last_seq.0,
            last_msg_id: session.last_msg_id.map(MsgId::get),
            version: session.version,
            started_at: session.started_at.0,
            queued_at: session.queued_at.0,
            assigned_at: session.assigned_at.map(|time| time.0),
            ended_at: session.ended_at.map(|time| time.0),
            ended_by: session.ended_by.as_ref().map(ToString::to_string),
            rating: rating.map(|rating| i16::from(rating.score)),
            rating_content: rating.map(|rating| rating.comment.clone()),
            rating_time: rating.map(|rating| rating.time.0),
            noticed_at: session.noticed_at.map(|time| time.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model {
            id: 7,
            user_id: "u1".into(),
            user_name: "Ann".into(),
            user_avatar: None,
            user_vip: Some(true),
            status: 2,
            admin_id: Some("a1".into()),
            source: "home".into(),
            balance: Some(-5),
            priority: -5,
            last_seq: 3,
            last_msg_id: Some(11),
            version: 4,
            started_at: 1,
            queued_at: 2,
            assigned_at: Some(3),
            ended_at: Some(9),
            ended_by: Some("user:u1".into()),
            rating: Some(5),
            rating_content: Some(String::new()),
            rating_time: Some(10),
            noticed_at: Some(2),
        }
    }

    #[test]
    fn a_row_survives_the_domain() {
        let session = Session::try_from(model()).expect("readable");
        assert_eq!(Model::from(&session), model());
    }

    #[test]
    fn a_bad_row_is_named() {
        let bad = [
            ("id", Model { id: 0, ..model() }),
            ("user_id", Model { user_id: "a b".into(), ..model() }),
            ("status", Model { status: 3, ..model() }),
            ("ended_by", Model { ended_by: Some("root".into()), ..model() }),
            ("rating_time", Model { rating_time: None, ..model() }),
        ];
        for (column, model) in bad {
            let error = Session::try_from(model).expect_err(column);
            assert_eq!((error.table, error.column), ("cg_chat_session", column));
        }
    }
}
