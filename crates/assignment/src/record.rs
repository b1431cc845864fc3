//! The decision record (`cg_chat_assignment`): why a session went where it went.

use kefu_core::{Actor, AdminId, AssignmentId, SessionId, Timestamp};
use kefu_events::RequeueReason;

use crate::{Candidate, Rule};

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The drain gave it to an agent.
    Assigned,
    /// An agent took it.
    Claimed,
    /// It was handed over.
    Transferred,
    /// It went back to the line.
    Requeued(RequeueReason),
    /// It ended.
    Ended,
}

impl Outcome {
    /// The stored result and reason.
    #[must_use]
    pub const fn as_texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Assigned => ("assigned", "drain"),
            Self::Claimed => ("assigned", "claim"),
            Self::Transferred => ("transferred", "transfer"),
            Self::Requeued(reason) => ("requeued", reason.as_str()),
            Self::Ended => ("ended", "end"),
        }
    }

    /// The outcome of stored texts.
    #[must_use]
    pub fn from_texts(result: &str, reason: &str) -> Option<Self> {
        [
            Self::Assigned,
            Self::Claimed,
            Self::Transferred,
            Self::Requeued(RequeueReason::AgentGone),
            Self::Requeued(RequeueReason::AgentOffline),
            Self::Ended,
        ]
        .into_iter()
        .find(|outcome| outcome.as_texts() == (result, reason))
    }
}

/// One decision about one session, written in the transaction that made it true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRecord {
    /// Grows with time.
    pub id: AssignmentId,
    /// The session.
    pub session_id: SessionId,
    /// Who has it afterwards; at an end, who had it.
    pub admin_id: Option<AdminId>,
    /// Who had it before.
    pub from: Option<AdminId>,
    /// Agents considered, with their loads.
    pub candidates: Vec<Candidate>,
    /// How the agent was chosen.
    pub rule: Rule,
    /// What was decided, and why.
    pub outcome: Outcome,
    /// Who caused it.
    pub actor: Actor,
    /// A colleague's word on a transfer.
    pub note: Option<String>,
    /// When.
    pub time: Timestamp,
}
