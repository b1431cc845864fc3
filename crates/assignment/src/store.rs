//! The port behind every change of a load: lock, snapshot, decide, write.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kefu_core::{AdminId, AssignmentId, IdSource, SessionId, StoreFault};
use kefu_events::Envelope;
use kefu_presence::Agent;
use kefu_session::{Refusal, Session};

use crate::DecisionRecord;

/// The rows a transaction locks: agents by id, then sessions by id (the lock order everywhere).
///
/// Ordered sets are the point: an adapter that iterates them cannot lock out of order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Agents to lock, each once.
    pub agents: std::collections::BTreeSet<AdminId>,
    /// Sessions to lock, each once.
    pub sessions: std::collections::BTreeSet<SessionId>,
}

impl Scope {
    /// A scope of the given rows.
    #[must_use]
    pub fn new(
        agents: impl IntoIterator<Item = AdminId>,
        sessions: impl IntoIterator<Item = SessionId>,
    ) -> Self {
        Self { agents: agents.into_iter().collect(), sessions: sessions.into_iter().collect() }
    }
}

/// The locked rows as they are, read after the locks were taken. Missing rows are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The agents of the scope that exist.
    pub agents: BTreeMap<AdminId, Agent>,
    /// The sessions of the scope that exist.
    pub sessions: BTreeMap<SessionId, Session>,
    /// The newest decision record of each session of the scope that has one (S4).
    pub latest: BTreeMap<SessionId, DecisionRecord>,
}

impl Snapshot {
    /// The id of a record about `session`, which gives it to `to` if anybody gets it: above what is
    /// recorded of both, though another node's clock or worker id made that (T3).
    pub(crate) fn next_record(
        &self,
        session: SessionId,
        to: Option<&Agent>,
        ids: &dyn IdSource,
    ) -> AssignmentId {
        let latest = self.latest.get(&session).map(|record| record.id);
        let assigned = to.and_then(|agent| agent.last_assigned);
        AssignmentId::next_after(ids, latest.max(assigned).map_or(0, AssignmentId::get))
    }
}

/// What a transaction writes, all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Agents, whole rows, created where absent. Only agents of the scope.
    pub agents: Vec<Agent>,
    /// Sessions, whole rows. Only sessions of the scope.
    pub sessions: Vec<Session>,
    /// New decision records.
    pub records: Vec<DecisionRecord>,
    /// New outbox rows.
    pub events: Vec<Envelope>,
}

impl Change {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.sessions.is_empty() && self.records.is_empty()
    }

    /// Replaces or adds one agent's row.
    pub fn put_agent(&mut self, agent: Agent) {
        match self.agents.iter_mut().find(|a| a.info.admin_id == agent.info.admin_id) {
            Some(slot) => *slot = agent,
            None => self.agents.push(agent),
        }
    }
}

/// What a decision says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Write this. An empty change commits nothing and is a success without effect (S4).
    Apply(Change),
    /// Write nothing; tell the caller why.
    Refuse(Refusal),
    /// The locked rows are not the ones that the scope was built for (another owner): read again,
    /// start again.
    Stale,
}

/// Decides inside the transaction. May run more than once; ids it burns are harmless.
pub type AssignmentDecision<'a> = &'a (dyn Fn(&Snapshot, &dyn IdSource) -> Verdict + Send + Sync);

/// The transactions that change a load (`cg_chat_agent`, `cg_chat_session`, `cg_chat_assignment`,
/// `cg_chat_outbox`).
///
/// # Contract
/// - `transact` is one transaction: it locks the scope's agents by id, then its sessions by id, reads
///   them after the locks, runs `decide` and writes exactly what the verdict lists.
/// - Two transactions whose scopes share a row run one after the other.
/// - It returns the verdict that was committed. `Apply` is committed and flushed (A2); `Refuse` and
///   `Stale` wrote nothing.
/// - `transact_in_turn` is `transact` for the drain: on one database one at a time (Z2), also between
///   processes. `None` when another one runs: nothing was written, and that one's caller reads the
///   line again after it, so that what was committed before this call is seen by somebody.
/// - Serialization failures, deadlocks and busy errors are retried inside, few times.
/// - `list_records` gives a session's records by id.
///
/// # Errors
/// [`StoreFault`]: after `Unavailable` or `Internal` nothing was written.
#[async_trait]
pub trait AssignmentStore: Send + Sync {
    /// Runs one decision under lock.
    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault>;

    /// [`Self::transact`] unless another process is in the middle of one.
    ///
    /// As it is here, it serves stores of one process, whose drain takes turns by itself.
    async fn transact_in_turn(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Option<Verdict>, StoreFault> {
        self.transact(scope, decide, ids).await.map(Some)
    }

    /// The decision records of one session.
    async fn list_records(&self, session: SessionId) -> Result<Vec<DecisionRecord>, StoreFault>;
}
