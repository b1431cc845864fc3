//! [`SessionStore`].

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{AdminId, IdSource, Seq, SessionId, StoreFault, UserId};
use kefu_entities::session::{Entity, Model};
use kefu_session::{
    OpenDecision, OpenVerdict, Opened, Session, SessionDecision, SessionStore, SessionVerdict,
    Updated,
};

use crate::bulk::Bulk;
use crate::error::Failure;
use crate::open::Database;
use crate::outbox::add_events;
use crate::rows::{self, Query, column, query};
use crate::transaction::{Outcome, Transaction, Work};

const BY_ID: &str = "SELECT * FROM cg_chat_session WHERE id = $1";
/// The order of the locks is that of the rows: they are sorted before they are locked.
const LOCK: &str = "SELECT * FROM cg_chat_session WHERE id = ANY($1) \
     ORDER BY id FOR NO KEY UPDATE";
const OPEN_BY_USER: &str = "SELECT * FROM cg_chat_session WHERE user_id = $1 AND status IN (0, 1)";
const LOCK_OPEN_BY_USER: &str = "SELECT * FROM cg_chat_session \
     WHERE user_id = $1 AND status IN (0, 1) FOR NO KEY UPDATE";
const LATEST_ENDED: &str = "SELECT * FROM cg_chat_session WHERE user_id = $1 AND status = 2 \
     ORDER BY id DESC LIMIT 1";
const OPEN_AFTER: &str =
    "SELECT * FROM cg_chat_session WHERE id > $1 AND status IN (0, 1) ORDER BY id LIMIT $2";
const OWNED: &str = "SELECT * FROM cg_chat_session WHERE admin_id = $1 AND status = 1 ORDER BY id";
const TIPS: &str = "SELECT id, last_seq FROM cg_chat_session WHERE id = ANY($1)";

/// The unique index that lets one open session of a user in (S1).
const OPEN_KEY: &str = "(user_id) WHERE status IN (0, 1)";
/// What belongs to the assignment and message stores is compared, not written.
const GUARD: [&str; 6] = ["id", "user_id", "status", "admin_id", "last_seq", "last_msg_id"];

/// Sessions in PostgreSQL.
pub(crate) struct PgSessionStore(pub(crate) Arc<Database>);

#[async_trait]
impl SessionStore for PgSessionStore {
    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault> {
        self.0.transact("session_open", &Open { user, decide, ids }).await
    }

    async fn update(
        &self,
        id: SessionId,
        decide: SessionDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Updated, StoreFault> {
        self.0.transact("session_update", &Update { id, decide, ids }).await
    }

    async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault> {
        Ok(self.list(query(BY_ID).bind(id.get())).await?.pop())
    }

    async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        Ok(self.list(query(OPEN_BY_USER).bind(user.as_str())).await?.pop())
    }

    async fn find_latest_ended(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        Ok(self.list(query(LATEST_ENDED).bind(user.as_str())).await?.pop())
    }

    async fn list_open_after(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<Session>, StoreFault> {
        let after = after.map_or(0, SessionId::get);
        self.list(query(OPEN_AFTER).bind(after).bind(i64::from(limit))).await
    }

    async fn list_owned(&self, admin: &AdminId) -> Result<Vec<Session>, StoreFault> {
        self.list(query(OWNED).bind(admin.as_str())).await
    }

    async fn list_tips(&self, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, StoreFault> {
        Ok(tips(&self.0, ids).await?)
    }
}

impl PgSessionStore {
    async fn list(&self, query: Query<'_>) -> Result<Vec<Session>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0, query).await?)
    }
}

async fn tips(database: &Database, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, Failure> {
    let known: BTreeMap<i64, SessionId> = ids.iter().map(|id| (id.get(), *id)).collect();
    let mut tips = BTreeMap::new();
    for row in database.read(query(TIPS).bind(raw(ids))).await? {
        let (id, last_seq): (i64, i64) = (column(&row, 0)?, column(&row, 1)?);
        tips.extend(known.get(&id).map(|id| (*id, Seq(last_seq))));
    }
    Ok(tips)
}

struct Open<'a> {
    user: &'a UserId,
    decide: OpenDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Open<'_> {
    type Output = Opened;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Opened>, Failure> {
        let lock = query(LOCK_OPEN_BY_USER).bind(self.user.as_str());
        let open: Option<Session> = rows::read::<Entity, _>(transaction, lock).await?.pop();
        match (self.decide)(open.as_ref(), self.ids) {
            OpenVerdict::Keep(session) => Ok(Outcome::Leave(opened(session))),
            OpenVerdict::Refresh(session) => {
                let mut bulk = Bulk::default();
                add_update(&mut bulk, &session)?;
                bulk.run(transaction).await?;
                Ok(Outcome::Commit(opened(session)))
            }
            OpenVerdict::Insert(session, events) => {
                let mut bulk = Bulk::default();
                bulk.insert_first::<Entity>(&[Model::from(&session)], OPEN_KEY)?;
                add_events(&mut bulk, &events)?;
                bulk.run(transaction).await?;
                Ok(Outcome::Commit(Opened { session, created: true, events }))
            }
        }
    }
}

const fn opened(session: Session) -> Opened {
    Opened { session, created: false, events: Vec::new() }
}

struct Update<'a> {
    id: SessionId,
    decide: SessionDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Update<'_> {
    type Output = Updated;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<Updated>, Failure> {
        let Some(before) = lock(transaction, &[self.id]).await?.pop() else {
            return Ok(Outcome::Leave(Updated::Missing));
        };
        match (self.decide)(&before, self.ids) {
            SessionVerdict::Keep => Ok(Outcome::Leave(Updated::Kept(before))),
            SessionVerdict::Refuse(refusal) => Ok(Outcome::Leave(Updated::Refused(refusal))),
            SessionVerdict::Write(after, events) => {
                let mut bulk = Bulk::default();
                add_update(&mut bulk, &after)?;
                add_events(&mut bulk, &events)?;
                bulk.run(transaction).await?;
                Ok(Outcome::Commit(Updated::Written(after, events)))
            }
        }
    }
}

fn add_update(bulk: &mut Bulk, after: &Session) -> Result<(), Failure> {
    let otherwise = "a session's key, status, owner or tip is changed";
    bulk.update::<Entity>(&[Model::from(after)], &GUARD, otherwise)
}

/// Locks the sessions of `ids` that exist, in id order, and gives them as they are then.
pub(crate) async fn lock(
    transaction: &mut Transaction,
    ids: &[SessionId],
) -> Result<Vec<Session>, Failure> {
    rows::read::<Entity, _>(transaction, query(LOCK).bind(raw(ids))).await
}

/// The user's open session, as it is now; not locked.
pub(crate) async fn open_of(
    transaction: &mut Transaction,
    user: &UserId,
) -> Result<Option<Session>, Failure> {
    let open = query(OPEN_BY_USER).bind(user.as_str());
    Ok(rows::read::<Entity, _>(transaction, open).await?.pop())
}

pub(crate) fn raw(ids: &[SessionId]) -> Vec<i64> {
    ids.iter().map(|id| id.get()).collect()
}
