//! `cg_chat_agent`.

use kefu_core::{AdminId, AgentInfo, AssignmentId, Timestamp};
use kefu_presence::{Agent, Availability};
use sea_orm::entity::prelude::*;
use serde::Serialize;

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_agent")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub admin_id: String,
    pub name: String,
    pub avatar: Option<String>,
    pub availability: String,
    pub max_sessions: i64,
    pub active_sessions: i64,
    pub last_assigned: Option<i64>,
    pub live: bool,
    pub live_gen: i64,
    pub gone_since: Option<i64>,
    pub version: i64,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl TryFrom<Model> for Agent {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_agent", &model.admin_id);
        Ok(Self {
            info: AgentInfo {
                admin_id: row.value("admin_id", AdminId::new(&model.admin_id))?,
                name: model.name,
                avatar: model.avatar,
            },
            availability: row
                .known("availability", Availability::from_text(&model.availability))?,
            max_sessions: row.value("max_sessions", model.max_sessions.try_into())?,
            active_sessions: row.value("active_sessions", model.active_sessions.try_into())?,
            last_assigned: row.nullable("last_assigned", model.last_assigned, AssignmentId::new)?,
            live: model.live,
            live_gen: model.live_gen,
            gone_since: model.gone_since.map(Timestamp),
            version: model.version,
        })
    }
}

impl From<&Agent> for Model {
    fn from(agent: &Agent) -> Self {
        Self {
            admin_id: agent.info.admin_id.to_string(),
            name: agent.info.name.clone(),
            avatar: agent.info.avatar.clone(),
            availability: agent.availability.as_str().to_owned(),
            max_sessions: agent.max_sessions.into(),
            active_sessions: agent.active_sessions.into(),
            last_assigned: agent.last_assigned.map(AssignmentId::get),
            live: agent.live,
            live_gen: agent.live_gen,
            gone_since: agent.gone_since.map(|time| time.0),
            version: agent.version,
        }
    }
}
