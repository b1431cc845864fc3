//! `cg_chat_agent`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use kefu_core::{AdminId, AssignmentId, StoreFault};
use kefu_presence::Agent;

use super::{ensure, ensure_unique};

/// Agents by id.
#[derive(Default)]
pub(crate) struct AgentTable {
    rows: BTreeMap<AdminId, Agent>,
    /// Where the agent is eligible, in the order of preference (Z1).
    eligible: BTreeSet<PreferenceKey>,
}

/// Load, last assigned (`None` first), id.
type PreferenceKey = (u32, Option<AssignmentId>, AdminId);

impl AgentTable {
    pub(crate) fn find(&self, admin: &AdminId) -> Option<&Agent> {
        self.rows.get(admin)
    }

    /// Everybody, by id.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Agent> {
        self.rows.values()
    }

    /// Everybody above `after`, by id.
    pub(crate) fn after(&self, after: Option<&AdminId>) -> impl Iterator<Item = &Agent> {
        let above = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.rows.range::<AdminId, _>((above, Bound::Unbounded)).map(|(_, agent)| agent)
    }

    /// Who may be given a session now, preferred first.
    pub(crate) fn eligible(&self) -> impl Iterator<Item = &Agent> {
        self.eligible.iter().filter_map(|(_, _, admin)| self.rows.get(admin))
    }

    pub(crate) fn check(
        &self,
        scope: &BTreeSet<AdminId>,
        changed: &[Agent],
    ) -> Result<(), StoreFault> {
        ensure_unique(changed.iter().map(|a| &a.info.admin_id), "an agent is written twice")?;
        let in_scope = |agent: &Agent| scope.contains(&agent.info.admin_id);
        ensure(changed.iter().all(in_scope), "an agent outside the scope is written")
    }

    pub(crate) fn put(&mut self, agent: Agent) {
        if let Some(before) = self.rows.get(&agent.info.admin_id) {
            self.eligible.remove(&preference_key(before));
        }
        if agent.is_eligible() {
            self.eligible.insert(preference_key(&agent));
        }
        self.rows.insert(agent.info.admin_id.clone(), agent);
    }
}

fn preference_key(agent: &Agent) -> PreferenceKey {
    (agent.active_sessions, agent.last_assigned, agent.info.admin_id.clone())
}
