//! Worlds that spread or count the load of agents wrongly (2.6, CC-03).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use kefu_assignment::{
    AssignmentDecision, AssignmentStore, Change, Outcome, Scope, Snapshot, Verdict, preference,
};
use kefu_core::{IdSource, StoreFault};
use kefu_desk::Stores;
use kefu_presence::{Agent, AgentDirectory, Availability};
use kefu_session::Refusal;
use tokio::sync::Barrier;

use crate::passing::{Altered, PassingAgents, PassingAssignments};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadFlaw {
    /// Everybody may take one more than the cap.
    CapOffByOne,
    /// The router takes every agent for idle.
    LoadIgnored,
    /// Ties go by id only.
    TiesById,
    /// The end of a session does not give its load back.
    LoadKept,
    /// This many claims decide on rows read before the lock, in pairs that read the same.
    Unlocked(usize),
}

/// `stores` with that flaw.
#[must_use]
pub fn load(stores: Stores, flaw: LoadFlaw) -> Stores {
    let pairs = if let LoadFlaw::Unlocked(claims) = flaw { claims } else { 0 };
    let broken = Arc::new(Altered(Broken {
        agents: Arc::clone(&stores.agents),
        store: Arc::clone(&stores.assignments),
        flaw,
        unlocked: AtomicUsize::new(pairs),
        meeting: Barrier::new(2),
    }));
    Stores { agents: Arc::clone(&broken) as _, assignments: broken, ..stores }
}

struct Broken {
    agents: Arc<dyn AgentDirectory>,
    store: Arc<dyn AssignmentStore>,
    flaw: LoadFlaw,
    unlocked: AtomicUsize,
    meeting: Barrier,
}

impl Broken {
    /// The rows, the lock given back, then the decision, then the lock for the write alone.
    async fn transact_unlocked(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        let verdict = std::sync::Mutex::new(None);
        let look = |snapshot: &Snapshot, ids: &dyn IdSource| {
            *verdict.lock().expect("whole") = Some(decide(snapshot, ids));
            Verdict::Refuse(Refusal::Conflict)
        };
        self.store.transact(scope, &look, ids).await?;
        self.meeting.wait().await;
        let verdict = verdict.into_inner().expect("whole").expect("decided");
        self.store.transact(scope, &|_, _| verdict.clone(), ids).await
    }

    fn is_unlocked(&self, scope: &Scope) -> bool {
        let claims = !scope.agents.is_empty() && !scope.sessions.is_empty();
        let take = |left: usize| left.checked_sub(1);
        claims && self.unlocked.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
    }
}

#[async_trait]
impl PassingAssignments for Broken {
    fn inner(&self) -> &dyn AssignmentStore {
        self.store.as_ref()
    }

    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        if self.is_unlocked(scope) {
            return self.transact_unlocked(scope, decide, ids).await;
        }
        let flaw = self.flaw;
        let flawed = |snapshot: &Snapshot, ids: &dyn IdSource| match flaw {
            LoadFlaw::CapOffByOne => with_caps(decide(&with_larger_caps(snapshot), ids), snapshot),
            LoadFlaw::LoadKept => with_kept_loads(decide(snapshot, ids), snapshot),
            LoadFlaw::LoadIgnored | LoadFlaw::TiesById | LoadFlaw::Unlocked(_) => {
                decide(snapshot, ids)
            }
        };
        self.store.transact(scope, &flawed, ids).await
    }
}

fn with_larger_caps(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    snapshot.agents.values_mut().for_each(|agent| agent.max_sessions += 1);
    snapshot
}

/// The verdict with the caps as they were stored, where it took them from the snapshot.
fn with_caps(verdict: Verdict, snapshot: &Snapshot) -> Verdict {
    let Verdict::Apply(mut change) = verdict else { return verdict };
    for agent in &mut change.agents {
        let before = snapshot.agents.get(&agent.info.admin_id);
        if let Some(before) = before.filter(|before| agent.max_sessions == before.max_sessions + 1)
        {
            agent.max_sessions = before.max_sessions;
        }
    }
    Verdict::Apply(change)
}

fn with_kept_loads(verdict: Verdict, snapshot: &Snapshot) -> Verdict {
    let Verdict::Apply(mut change) = verdict else { return verdict };
    if is_end(&change) {
        for agent in &mut change.agents {
            let before = snapshot.agents.get(&agent.info.admin_id);
            agent.active_sessions = before.map_or(0, |before| before.active_sessions);
        }
    }
    Verdict::Apply(change)
}

fn is_end(change: &Change) -> bool {
    change.records.iter().any(|record| record.outcome == Outcome::Ended)
}

#[async_trait]
impl PassingAgents for Broken {
    fn inner(&self) -> &dyn AgentDirectory {
        self.agents.as_ref()
    }

    async fn list_eligible(&self, limit: u32) -> Result<Vec<Agent>, StoreFault> {
        if self.flaw == LoadFlaw::CapOffByOne {
            let mut agents = self.agents.list_live().await?;
            agents.iter_mut().for_each(|agent| agent.max_sessions += 1);
            agents.retain(|agent| agent.availability == Availability::Online && agent.has_room());
            agents.sort_by(preference);
            return Ok(agents);
        }
        let mut agents = self.agents.list_eligible(limit).await?;
        for agent in &mut agents {
            match self.flaw {
                LoadFlaw::LoadIgnored => agent.active_sessions = 0,
                LoadFlaw::TiesById => agent.last_assigned = None,
                LoadFlaw::CapOffByOne | LoadFlaw::LoadKept | LoadFlaw::Unlocked(_) => {}
            }
        }
        Ok(agents)
    }
}
