//! An agent as the router sees one, and the port that reads agents.

use async_trait::async_trait;
use kefu_core::{AdminId, AgentInfo, AssignmentId, StoreFault, Timestamp};

/// What an agent chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Availability {
    /// Takes new sessions.
    Online,
    /// Takes none; open ones stay.
    Offline,
}

impl Availability {
    /// The wire and table text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Offline => "offline",
        }
    }

    /// The availability of a stored text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "online" => Some(Self::Online),
            "offline" => Some(Self::Offline),
            _ => None,
        }
    }
}

/// One agent (`cg_chat_agent`).
///
/// Invariant: `active_sessions` equals the number of active sessions whose owner this agent is, and
/// never exceeds what the cap was when the last one was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Id, name and picture, from the newest token.
    pub info: AgentInfo,
    /// What the agent chose.
    pub availability: Availability,
    /// How many sessions the agent takes at most (CC-03).
    pub max_sessions: u32,
    /// How many sessions the agent has.
    pub active_sessions: u32,
    /// The decision record that last gave this agent a session. Record ids grow with time and never
    /// tie, so the smallest is the agent unassigned longest; `None` counts as longest.
    pub last_assigned: Option<AssignmentId>,
    /// Whether a connection of this agent holds a lease.
    pub live: bool,
    /// Grows whenever `live` becomes true: a fence against acting on an older life.
    pub live_gen: i64,
    /// Since when the last lease is gone.
    pub gone_since: Option<Timestamp>,
    /// Grows with every change of the row, so that a copy of it knows the newer of two (A1).
    pub version: i64,
}

impl Agent {
    /// An agent nobody has seen before: offline, not connected.
    #[must_use]
    pub const fn new(info: AgentInfo, max_sessions: u32) -> Self {
        Self {
            info,
            availability: Availability::Offline,
            max_sessions,
            active_sessions: 0,
            last_assigned: None,
            live: false,
            live_gen: 0,
            gone_since: None,
            version: 0,
        }
    }

    /// Whether the router may give this agent a session now (Z2).
    #[must_use]
    pub fn is_eligible(&self) -> bool {
        self.availability == Availability::Online && self.live && self.has_room()
    }

    /// Whether one more session stays within the cap.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.active_sessions < self.max_sessions
    }

    /// Takes new sessions from now on.
    #[must_use]
    pub fn online(&self, max_sessions: u32) -> Self {
        Self { availability: Availability::Online, max_sessions, ..self.next() }
    }

    /// Takes no new sessions.
    #[must_use]
    pub fn offline(&self) -> Self {
        Self { availability: Availability::Offline, ..self.next() }
    }

    /// Holds a lease again: a new life, with the newest name and picture.
    #[must_use]
    pub fn connected(&self, info: &AgentInfo) -> Self {
        let live_gen = if self.live { self.live_gen } else { self.live_gen + 1 };
        Self { info: info.clone(), live: true, live_gen, gone_since: None, ..self.next() }
    }

    /// The last lease is gone.
    #[must_use]
    pub fn vanished(&self, now: Timestamp) -> Self {
        let gone_since = if self.live { Some(now) } else { self.gone_since };
        Self { live: false, gone_since, ..self.next() }
    }

    /// Gone from `now` on, whatever was known before: the grace begins anew (P4).
    #[must_use]
    pub fn gone_anew(&self, now: Timestamp) -> Self {
        Self { live: false, gone_since: Some(now), ..self.next() }
    }

    /// With one session more, given by `record`.
    #[must_use]
    pub fn loaded(&self, record: AssignmentId) -> Self {
        Self {
            active_sessions: self.active_sessions + 1,
            last_assigned: Some(record),
            ..self.next()
        }
    }

    /// With one session less.
    #[must_use]
    pub fn relieved(&self) -> Self {
        Self { active_sessions: self.active_sessions.saturating_sub(1), ..self.next() }
    }

    /// The same agent in the next version of its row.
    fn next(&self) -> Self {
        Self { version: self.version + 1, ..self.clone() }
    }
}

/// Reads of agents (`cg_chat_agent`). Every write goes through `kefu_assignment::AssignmentStore`,
/// since it may change a load.
///
/// # Contract
/// - Committed rows only; no locks.
/// - `list_eligible` is ordered as the router wants candidates: least load, then unassigned longest
///   (`None` first), then id (Z1), and holds only eligible agents.
/// - `list_gone` and `list_after` are ordered by id.
///
/// # Errors
/// [`StoreFault::Unavailable`], or `Internal` for a row that cannot be read.
#[async_trait]
pub trait AgentDirectory: Send + Sync {
    /// One agent.
    async fn find(&self, admin: &AdminId) -> Result<Option<Agent>, StoreFault>;

    /// All agents whose availability is online, by id.
    async fn list_online(&self) -> Result<Vec<Agent>, StoreFault>;

    /// Up to `limit` agents who may be given a session now.
    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault>;

    /// All agents marked live, by id.
    async fn list_live(&self) -> Result<Vec<Agent>, StoreFault>;

    /// Agents gone since before `before` who are still online or still own sessions.
    async fn list_gone(&self, before: Timestamp) -> Result<Vec<Agent>, StoreFault>;

    /// Up to `limit` agents above `after`, all of them in pages (A1: what copies are rebuilt from).
    async fn list_after(
        &self,
        after: Option<&AdminId>,
        limit: u32,
    ) -> Result<Vec<Agent>, StoreFault>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> Agent {
        let id = AdminId::new("a1").expect("valid");
        Agent::new(AgentInfo { admin_id: id, name: "A".into(), avatar: None }, 2)
    }

    #[test]
    fn connecting_never_changes_availability() {
        let connected = agent().connected(&agent().info);
        assert!(connected.live);
        assert_eq!(connected.availability, Availability::Offline, "Z7");
        assert!(!connected.is_eligible());
    }

    #[test]
    fn a_new_life_gets_a_new_generation_and_a_second_socket_does_not() {
        let first = agent().connected(&agent().info);
        assert_eq!(first.connected(&first.info).live_gen, first.live_gen);
        let second = first.vanished(Timestamp(5)).connected(&first.info);
        assert_eq!(second.live_gen, first.live_gen + 1);
        assert_eq!(second.gone_since, None);
    }

    #[test]
    fn every_change_is_a_newer_version() {
        let record = AssignmentId::new(1).expect("positive");
        let info = agent().info;
        let changes: [&dyn Fn(&Agent) -> Agent; 7] = [
            &|agent| agent.online(3),
            &Agent::offline,
            &|agent| agent.connected(&info),
            &|agent| agent.vanished(Timestamp(1)),
            &|agent| agent.gone_anew(Timestamp(1)),
            &|agent| agent.loaded(record),
            &Agent::relieved,
        ];
        for change in changes {
            assert!(change(&agent()).version > agent().version, "A1");
        }
    }

    #[test]
    fn gone_since_is_the_first_moment() {
        let gone = agent().connected(&agent().info).vanished(Timestamp(5));
        assert_eq!(gone.vanished(Timestamp(9)).gone_since, Some(Timestamp(5)));
    }
}
