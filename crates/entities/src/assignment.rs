//! `cg_chat_assignment`.

use kefu_assignment::{Candidate, DecisionRecord, Outcome, Rule};
use kefu_core::{AdminId, AssignmentId, SessionId, Timestamp};
use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};

use crate::UnreadableRow;
use crate::unreadable::Reading;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel, Serialize)]
#[sea_orm(table_name = "cg_chat_assignment")]
#[expect(missing_docs, reason = "the columns are described in the README of kefu-migrations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub session_id: i64,
    pub admin_id: Option<String>,
    pub from_admin_id: Option<String>,
    pub candidates: String,
    pub rule: String,
    pub result: String,
    pub reason: String,
    pub actor: String,
    pub note: Option<String>,
    pub time: i64,
}

/// None: joins are written out where they are needed.
#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// An element of the column `candidates`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredCandidate {
    admin_id: AdminId,
    load: u32,
    max_sessions: u32,
}

impl TryFrom<Model> for DecisionRecord {
    type Error = UnreadableRow;

    fn try_from(model: Model) -> Result<Self, UnreadableRow> {
        let row = Reading::new("cg_chat_assignment", &model.id);
        let outcome = Outcome::from_texts(&model.result, &model.reason);
        let candidates: Vec<StoredCandidate> =
            row.value("candidates", serde_json::from_str(&model.candidates))?;
        Ok(Self {
            id: row.value("id", AssignmentId::new(model.id))?,
            session_id: row.value("session_id", SessionId::new(model.session_id))?,
            admin_id: row.nullable("admin_id", model.admin_id, AdminId::new)?,
            from: row.nullable("from_admin_id", model.from_admin_id, AdminId::new)?,
            candidates: candidates.into_iter().map(Candidate::from).collect(),
            rule: row.known("rule", Rule::from_text(&model.rule))?,
            outcome: row.known("reason", outcome)?,
            actor: row.value("actor", model.actor.parse())?,
            note: model.note,
            time: Timestamp(model.time),
        })
    }
}

impl TryFrom<&DecisionRecord> for Model {
    type Error = serde_json::Error;

    fn try_from(record: &DecisionRecord) -> Result<Self, serde_json::Error> {
        let candidates: Vec<_> = record.candidates.iter().map(StoredCandidate::from).collect();
        let (result, reason) = record.outcome.as_texts();
        Ok(Self {
            id: record.id.get(),
            session_id: record.session_id.get(),
            admin_id: record.admin_id.as_ref().map(ToString::to_string),
            from_admin_id: record.from.as_ref().map(ToString::to_string),
            candidates: serde_json::to_string(&candidates)?,
            rule: record.rule.as_str().to_owned(),
            result: result.to_owned(),
            reason: reason.to_owned(),
            actor: record.actor.to_string(),
            note: record.note.clone(),
            time: record.time.0,
        })
    }
}

impl From<StoredCandidate> for Candidate {
    fn from(stored: StoredCandidate) -> Self {
        let StoredCandidate { admin_id, load, max_sessions } = stored;
        Self { admin_id, load, max_sessions }
    }
}

impl From<&Candidate> for StoredCandidate {
    fn from(candidate: &Candidate) -> Self {
        Self {
            admin_id: candidate.admin_id.clone(),
            load: candidate.load,
            max_sessions: candidate.max_sessions,
        }
    }
}
