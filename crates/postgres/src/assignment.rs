//! [`AssignmentStore`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_assignment::{
    AssignmentDecision, AssignmentStore, Change, DecisionRecord, Scope, Snapshot, Verdict,
};
use kefu_core::{AdminId, IdSource, SessionId, StoreFault};
use kefu_entities::{agent, assignment, session};
use kefu_presence::Agent;

use crate::bulk::Bulk;
use crate::error::Failure;
use crate::open::Database;
use crate::outbox::add_events;
use crate::rows::{self, column, query};
use crate::session::{lock, raw};
use crate::transaction::{Outcome, Rows as _, Transaction, Work};

/// The order of the locks is that of the rows: they are sorted before they are locked.
const LOCK_AGENTS: &str = "SELECT * FROM cg_chat_agent WHERE admin_id = ANY($1) \
     ORDER BY admin_id FOR NO KEY UPDATE";
/// A statement of its own after the locks, since READ COMMITTED takes its snapshot per statement.
const LATEST: &str = "SELECT a.* FROM UNNEST($1::bigint[]) AS s(id) CROSS JOIN LATERAL ( \
     SELECT * FROM cg_chat_assignment WHERE session_id = s.id ORDER BY id DESC LIMIT 1) AS a";
/// Z2: one drain at a time per line. A lock of the transaction, since a pooler gives every transaction
/// another connection; several tenants share a database in schemas of their own.
const TAKE_TURN: &str =
    "SELECT pg_try_advisory_xact_lock(1667851629, hashtext(current_schema()::text))";
const RECORDS: &str = "SELECT * FROM cg_chat_assignment WHERE session_id = $1 ORDER BY id";

/// Loads and decisions in PostgreSQL.
pub(crate) struct PgAssignmentStore(pub(crate) Arc<Database>);

#[async_trait]
impl AssignmentStore for PgAssignmentStore {
    async fn transact(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Verdict, StoreFault> {
        self.0.transact("assignment", &Transact { scope, decide, ids }).await
    }

    async fn transact_in_turn(
        &self,
        scope: &Scope,
        decide: AssignmentDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Option<Verdict>, StoreFault> {
        self.0.transact("drain", &InTurn(Transact { scope, decide, ids })).await
    }

    async fn list_records(&self, session: SessionId) -> Result<Vec<DecisionRecord>, StoreFault> {
        let list = query(RECORDS).bind(session.get());
        Ok(rows::committed::<assignment::Entity, _>(&self.0, list).await?)
    }
}

struct Transact<'a> {
    scope: &'a Scope,
    decide: AssignmentDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Transact<'_> {
    type Output = Verdict;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Verdict>, Failure> {
        let snapshot = snapshot(transaction, self.scope).await?;
        let verdict = (self.decide)(&snapshot, self.ids);
        match &verdict {
            Verdict::Apply(change) if !change.is_empty() || !change.events.is_empty() => {
                apply(transaction, self.scope, &snapshot, change).await?;
                Ok(Outcome::Commit(verdict))
            }
            Verdict::Apply(_) | Verdict::Refuse(_) | Verdict::Stale => Ok(Outcome::Leave(verdict)),
        }
    }
}

struct InTurn<'a>(Transact<'a>);

impl Work for InTurn<'_> {
    type Output = Option<Verdict>;

    async fn run(
        &self,
        transaction: &mut Transaction,
    ) -> Result<Outcome<Option<Verdict>>, Failure> {
        let taken = transaction.query(query(TAKE_TURN)).await?;
        let Some(true) = taken.first().map(|row| column::<bool>(row, 0)).transpose()? else {
            return Ok(Outcome::Leave(None));
        };
        Ok(match self.0.run(transaction).await? {
            Outcome::Commit(verdict) => Outcome::Commit(Some(verdict)),
            Outcome::Leave(verdict) => Outcome::Leave(Some(verdict)),
        })
    }
}

async fn snapshot(transaction: &mut Transaction, scope: &Scope) -> Result<Snapshot, Failure> {
    let mut snapshot = Snapshot::default();
    if !scope.agents.is_empty() {
        let ids: Vec<_> = scope.agents.iter().map(AdminId::as_str).collect();
        let lock = query(LOCK_AGENTS).bind(ids);
        let agents: Vec<Agent> = rows::read::<agent::Entity, _>(transaction, lock).await?;
        snapshot.agents =
            agents.into_iter().map(|agent| (agent.info.admin_id.clone(), agent)).collect();
    }
    if !scope.sessions.is_empty() {
        let ids: Vec<_> = scope.sessions.iter().copied().collect();
        let sessions = lock(transaction, &ids).await?;
        snapshot.sessions = sessions.into_iter().map(|session| (session.id, session)).collect();
        let latest = query(LATEST).bind(raw(&ids));
        let latest: Vec<DecisionRecord> =
            rows::read::<assignment::Entity, _>(transaction, latest).await?;
        snapshot.latest = latest.into_iter().map(|record| (record.session_id, record)).collect();
    }
    Ok(snapshot)
}

async fn apply(
    transaction: &mut Transaction,
    scope: &Scope,
    snapshot: &Snapshot,
    change: &Change,
) -> Result<(), Failure> {
    let within = change.agents.iter().all(|agent| scope.agents.contains(&agent.info.admin_id))
        && change.sessions.iter().all(|session| scope.sessions.contains(&session.id));
    if !within {
        return Err(Failure::Forbidden("a row outside the scope is written"));
    }
    let is_known = |agent: &&Agent| snapshot.agents.contains_key(&agent.info.admin_id);
    let (known, new): (Vec<_>, Vec<_>) = change.agents.iter().partition(is_known);
    let agents =
        |agents: Vec<&Agent>| agents.into_iter().map(agent::Model::from).collect::<Vec<_>>();
    let sessions: Vec<_> = change.sessions.iter().map(session::Model::from).collect();
    let records =
        change.records.iter().map(assignment::Model::try_from).collect::<Result<Vec<_>, _>>()?;
    let mut bulk = Bulk::default();
    bulk.update::<agent::Entity>(&agents(known), &["admin_id"], "an agent is written twice")?;
    // A row that is not there cannot be locked: of two who create it, one starts again.
    bulk.insert_first::<agent::Entity>(&agents(new), "(admin_id)")?;
    bulk.update::<session::Entity>(&sessions, &["id"], "an unknown session is written")?;
    bulk.insert::<assignment::Entity>(&records)?;
    add_events(&mut bulk, &change.events)?;
    bulk.run(transaction).await
}
