//! Routing: least load, ties to the agent unassigned longest, then by id (Z1, CC-01).

use std::cmp::Ordering;

use kefu_core::AdminId;
use kefu_presence::Agent;
use std::fmt;

/// By which rule an agent was chosen; stored in the decision record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Z1.
    LeastLoad,
    /// The agent took it (Z6).
    Claim,
    /// A person named the target (Z5).
    Named,
    /// No agent was chosen: requeue or end.
    None,
}

impl Rule {
    /// The stored text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeastLoad => "least_load",
            Self::Claim => "claim",
            Self::Named => "named",
            Self::None => "none",
        }
    }

    /// The rule of a stored text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::LeastLoad, Self::Claim, Self::Named, Self::None]
            .into_iter()
            .find(|rule| rule.as_str() == text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An agent who was considered, with the load at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The agent.
    pub admin_id: AdminId,
    /// Sessions then.
    pub load: u32,
    /// Cap then.
    pub max_sessions: u32,
}

impl From<&Agent> for Candidate {
    fn from(agent: &Agent) -> Self {
        Self {
            admin_id: agent.info.admin_id.clone(),
            load: agent.active_sessions,
            max_sessions: agent.max_sessions,
        }
    }
}

/// The order in which agents are preferred (Z1): smallest first.
///
/// `None` sorts before every record id, so an agent never assigned counts as unassigned longest.
#[must_use]
pub fn preference(left: &Agent, right: &Agent) -> Ordering {
    left.active_sessions
        .cmp(&right.active_sessions)
        .then(left.last_assigned.cmp(&right.last_assigned))
        .then(left.info.admin_id.cmp(&right.info.admin_id))
}

/// The preferred eligible agent.
#[must_use]
pub fn choose<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> Option<&'a Agent> {
    agents.into_iter().filter(|agent| agent.is_eligible()).min_by(|l, r| preference(l, r))
}
