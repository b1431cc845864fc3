//! What only supervisors ask for: watching a session, the board, why a visitor waited.

use std::time::Duration;

use kefu_assignment::DecisionRecord;
use kefu_console::{BoardAgent, BoardFigures};
use kefu_core::{Actor, AdminId, AssignmentId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{Fields, Problem};
use crate::server::agent::AgentEntry;
use crate::server::session::SessionObject;
use crate::text::{Comment, DecimalId, PersonId, UnixMillis, decimal};
use crate::vocabulary::{Availability, EndedBy};

/// `chat.session.watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionWatch {
    /// The session now. What happens in it from here on is pushed.
    pub session: SessionObject,
}

/// `chat.board` as a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardRequest {
    /// Whether the board is pushed from now on; yes when left out.
    #[serde(default = "yes")]
    pub subscribe: bool,
}

const fn yes() -> bool {
    true
}

impl BoardRequest {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self { subscribe: fields.flag("subscribe")?.unwrap_or_else(yes) })
    }
}

/// `chat.board`: the answer, and pushed at most every two seconds while it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardFrame {
    /// As of when.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
    /// How many wait.
    pub waiting: usize,
    /// How long the first of them has waited; 0 when nobody waits.
    pub longest_wait_ms: u64,
    /// Who is online or has open sessions, by `adminId`.
    pub agents: Vec<AgentEntry>,
    /// Sessions opened in each of the last 60 minutes, the present one last.
    pub arrivals_per_minute: Vec<u32>,
    /// From opening to the first message of an agent, over the sessions opened in these minutes.
    pub first_response_ms: ResponseTimes,
}

/// Percentiles; null while no session of the last hour has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseTimes {
    /// Half took at most this.
    pub p50: Option<u64>,
    /// Nine of ten took at most this.
    pub p90: Option<u64>,
}

impl From<&BoardFigures> for BoardFrame {
    fn from(figures: &BoardFigures) -> Self {
        let response = figures.first_response;
        Self {
            time: figures.time,
            waiting: figures.waiting,
            longest_wait_ms: millis(figures.longest_wait),
            agents: figures.agents.iter().map(AgentEntry::from).collect(),
            arrivals_per_minute: figures.arrivals.to_vec(),
            first_response_ms: ResponseTimes {
                p50: response.map(|times| millis(times.p50)),
                p90: response.map(|times| millis(times.p90)),
            },
        }
    }
}

impl From<&BoardAgent> for AgentEntry {
    fn from(agent: &BoardAgent) -> Self {
        Self {
            admin_id: agent.admin_id.clone(),
            name: agent.name.clone(),
            status: Availability::when(agent.online),
            active_sessions: agent.active_sessions,
            max_sessions: agent.max_sessions,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `chat.assignment.explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The session.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub session_id: SessionId,
    /// Every decision about it, the oldest first.
    pub records: Vec<RecordObject>,
}

impl Explanation {
    /// The decisions about a session.
    #[must_use]
    pub fn new(session_id: SessionId, records: &[DecisionRecord]) -> Self {
        Self { session_id, records: records.iter().map(RecordObject::from).collect() }
    }
}

/// One decision about a session. Words may be added to `result`, `reason` and `rule`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordObject {
    /// The decision; larger ones are later.
    #[serde(with = "decimal")]
    #[schemars(with = "DecimalId")]
    pub id: AssignmentId,
    /// When.
    #[schemars(with = "UnixMillis")]
    pub time: Timestamp,
    /// `assigned`, `transferred`, `requeued` or `ended`.
    pub result: String,
    /// `drain`, `claim`, `transfer`, `agent_gone`, `agent_offline` or `end`.
    pub reason: String,
    /// How the agent was chosen: `least_load`, `claim`, `named` or `none`.
    pub rule: String,
    /// Who has it afterwards; at an end, who had it.
    #[schemars(with = "Option<PersonId>")]
    pub admin_id: Option<AdminId>,
    /// Who had it before.
    #[schemars(with = "Option<PersonId>")]
    pub from_admin_id: Option<AdminId>,
    /// Who caused it.
    pub actor: ActorObject,
    /// Who was considered, with the load at that moment.
    pub candidates: Vec<CandidateObject>,
    /// A colleague's word on a transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Comment>")]
    pub note: Option<String>,
}

/// Who caused something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActorObject {
    /// In which role.
    #[serde(rename = "type")]
    pub kind: EndedBy,
    /// Who; null for the server itself.
    #[schemars(with = "Option<PersonId>")]
    pub id: Option<String>,
}

/// An agent who was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateObject {
    /// The agent.
    #[schemars(with = "PersonId")]
    pub admin_id: AdminId,
    /// The load then.
    pub active_sessions: u32,
    /// The cap then.
    pub max_sessions: u32,
}

impl From<&DecisionRecord> for RecordObject {
    fn from(record: &DecisionRecord) -> Self {
        let (result, reason) = record.outcome.as_texts();
        let candidates = record.candidates.iter().map(|candidate| CandidateObject {
            admin_id: candidate.admin_id.clone(),
            active_sessions: candidate.load,
            max_sessions: candidate.max_sessions,
        });
        Self {
            id: record.id,
            time: record.time,
            result: result.to_owned(),
            reason: reason.to_owned(),
            rule: record.rule.as_str().to_owned(),
            admin_id: record.admin_id.clone(),
            from_admin_id: record.from.clone(),
            actor: (&record.actor).into(),
            candidates: candidates.collect(),
            note: record.note.clone(),
        }
    }
}

impl From<&Actor> for ActorObject {
    fn from(actor: &Actor) -> Self {
        let id = match actor {
            Actor::User(user) => Some(user.to_string()),
            Actor::Agent(admin) | Actor::Supervisor(admin) => Some(admin.to_string()),
            Actor::System => None,
        };
        Self { kind: actor.into(), id }
    }
}
