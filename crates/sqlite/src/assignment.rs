//! [`AssignmentStore`].

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use kefu_assignment::{
    AssignmentDecision, AssignmentStore, Change, DecisionRecord, Scope, Snapshot, Verdict,
};
use kefu_core::{IdSource, SessionId, StoreFault};
use kefu_entities::{agent, assignment, session};
use kefu_presence::Agent;
use sea_orm::DatabaseTransaction;

use crate::error::Failure;
use crate::open::Database;
use crate::outbox::write_events;
use crate::rows;
use crate::session::locked;
use crate::writer::{Outcome, Work};

const AGENTS: &str =
    "SELECT * FROM cg_chat_agent WHERE admin_id IN (SELECT value FROM json_each(?1))";
const LATEST: &str = "SELECT a.* FROM json_each(?1) AS j CROSS JOIN cg_chat_assignment AS a \
     WHERE a.id = (SELECT MAX(id) FROM cg_chat_assignment WHERE session_id = j.value)";
const RECORDS: &str = "SELECT * FROM cg_chat_assignment WHERE session_id = ?1 ORDER BY id";

static PUT_AGENTS: LazyLock<String> =
    LazyLock::new(|| rows::upsert_sql::<agent::Entity>("admin_id"));
static UPDATE_SESSIONS: LazyLock<String> =
    LazyLock::new(|| rows::update_sql::<session::Entity>(&["id"]));
static INSERT_RECORDS: LazyLock<String> = LazyLock::new(rows::insert_sql::<assignment::Entity>);

/// Loads and decisions in SQLite.
pub(crate) struct SqliteAssignmentStore(pub(crate) Arc<Database>);

#[async_trait]
impl AssignmentStore for SqliteAssignmentStore {
    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        self.0.writer.transact("assignment", &Transact { scope, decide, ids }).await
    }

    async fn list_records(&self, session: SessionId) -> Result<Vec<DecisionRecord>, StoreFault> {
        let session = session.get().into();
        let readers = &self.0.readers;
        Ok(rows::committed::<assignment::Entity, _>(readers, RECORDS, [session]).await?)
    }
}

struct Transact<'a> {
    scope: &'a Scope,
    decide: AssignmentDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Transact<'_> {
    type Output = Verdict;

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<Verdict>, Failure> {
        let snapshot = snapshot(transaction, self.scope).await?;
        let verdict = (self.decide)(&snapshot, self.ids);
        match &verdict {
            Verdict::Apply(change) if !change.is_empty() || !change.events.is_empty() => {
                apply(transaction, self.scope, change).await?;
                Ok(Outcome::Commit(verdict))
            }
            Verdict::Apply(_) | Verdict::Refuse(_) | Verdict::Stale => Ok(Outcome::Leave(verdict)),
        }
    }
}

async fn snapshot(transaction: &DatabaseTransaction, scope: &Scope) -> Result<Snapshot, Failure> {
    let mut snapshot = Snapshot::default();
    if !scope.agents.is_empty() {
        let ids: Vec<_> = scope.agents.iter().collect();
        let agents: Vec<Agent> =
            rows::locked::<agent::Entity, _>(transaction, AGENTS, [rows::json(&ids)?]).await?;
        snapshot.agents =
            agents.into_iter().map(|agent| (agent.info.admin_id.clone(), agent)).collect();
    }
    if !scope.sessions.is_empty() {
        let ids: Vec<_> = scope.sessions.iter().copied().collect();
        let sessions = locked(transaction, &ids).await?;
        snapshot.sessions = sessions.into_iter().map(|session| (session.id, session)).collect();
        let latest: Vec<DecisionRecord> =
            rows::locked::<assignment::Entity, _>(transaction, LATEST, [rows::json(&ids)?]).await?;
        snapshot.latest = latest.into_iter().map(|record| (record.session_id, record)).collect();
    }
    Ok(snapshot)
}

async fn apply(
    transaction: &DatabaseTransaction,
    scope: &Scope,
    change: &Change,
) -> Result<(), Failure> {
    let within = change.agents.iter().all(|agent| scope.agents.contains(&agent.info.admin_id))
        && change.sessions.iter().all(|session| scope.sessions.contains(&session.id));
    if !within {
        return Err(Failure::Forbidden("a row outside the scope is written"));
    }
    let agents: Vec<_> = change.agents.iter().map(agent::Model::from).collect();
    rows::write(transaction, &PUT_AGENTS, &agents).await?;
    let sessions: Vec<_> = change.sessions.iter().map(session::Model::from).collect();
    let written = rows::write(transaction, &UPDATE_SESSIONS, &sessions).await?;
    if written != sessions.len() as u64 {
        return Err(Failure::Forbidden("an unknown session is written"));
    }
    let records =
        change.records.iter().map(assignment::Model::try_from).collect::<Result<Vec<_>, _>>()?;
    rows::write(transaction, &INSERT_RECORDS, &records).await?;
    write_events(transaction, &change.events).await
}
