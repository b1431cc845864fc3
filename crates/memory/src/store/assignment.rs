//! [`AssignmentStore`].

use async_trait::async_trait;
use kefu_assignment::{
    AssignmentDecision, AssignmentStore, DecisionRecord, Scope, Snapshot, Verdict,
};
use kefu_core::{IdSource, SessionId, StoreFault};

use crate::MemoryWorld;
use crate::table::Tables;

#[async_trait]
impl AssignmentStore for MemoryWorld {
    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        let mut tables = self.begin().await;
        let verdict = decide(&snapshot(&tables, scope), ids);
        if let Verdict::Apply(change) = &verdict {
            tables.write_change(scope, change)?;
        }
        Ok(verdict)
    }

    async fn list_records(&self, session: SessionId) -> Result<Vec<DecisionRecord>, StoreFault> {
        Ok(self.begin().await.records.of_session(session).cloned().collect())
    }
}

fn snapshot(tables: &Tables, scope: &Scope) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for admin in &scope.agents {
        if let Some(agent) = tables.agents.find(admin) {
            snapshot.agents.insert(admin.clone(), agent.clone());
        }
    }
    for id in &scope.sessions {
        if let Some(session) = tables.sessions.find(*id) {
            snapshot.sessions.insert(*id, session.clone());
        }
        if let Some(record) = tables.records.of_session(*id).next_back() {
            snapshot.latest.insert(*id, record.clone());
        }
    }
    snapshot
}
