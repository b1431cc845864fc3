//! [`SessionStore`].

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use kefu_core::{AdminId, IdSource, Seq, SessionId, StoreFault, UserId};
use kefu_entities::session::{Entity, Model};
use kefu_session::{
    OpenDecision, OpenVerdict, Opened, Session, SessionDecision, SessionStore, SessionVerdict,
    Updated,
};
use sea_orm::{ConnectionTrait, DatabaseTransaction};

use crate::error::Failure;
use crate::open::Database;
use crate::outbox::write_events;
use crate::rows;
use crate::writer::{Outcome, Work};

const BY_ID: &str = "SELECT * FROM cg_chat_session WHERE id = ?1";
const BY_IDS: &str =
    "SELECT * FROM cg_chat_session WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id";
const OPEN_BY_USER: &str = "SELECT * FROM cg_chat_session WHERE user_id = ?1 AND status IN (0, 1)";
const LATEST_ENDED: &str = "SELECT * FROM cg_chat_session WHERE user_id = ?1 AND status = 2 \
     ORDER BY id DESC LIMIT 1";
const OPEN_AFTER: &str =
    "SELECT * FROM cg_chat_session WHERE id > ?1 AND status IN (0, 1) ORDER BY id LIMIT ?2";
const OWNED: &str = "SELECT * FROM cg_chat_session WHERE admin_id = ?1 AND status = 1 ORDER BY id";
const TIPS: &str = "SELECT id, last_seq FROM cg_chat_session \
     WHERE id IN (SELECT value FROM json_each(?1))";

static INSERT: LazyLock<String> = LazyLock::new(rows::insert_sql::<Entity>);
/// What belongs to the assignment and message stores is compared, not written.
static UPDATE: LazyLock<String> = LazyLock::new(|| {
    rows::update_sql::<Entity>(&["id", "user_id", "status", "admin_id", "last_seq", "last_msg_id"])
});

/// Sessions in SQLite.
pub(crate) struct SqliteSessionStore(pub(crate) Arc<Database>);

#[async_trait]
impl SessionStore for SqliteSessionStore {
    async fn open(
        &self,
        user: &UserId,
        decide: OpenDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Opened, StoreFault> {
        self.0.writer.transact("session_open", &Open { user, decide, ids }).await
    }

    async fn update(
        &self,
        id: SessionId,
        decide: SessionDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<Updated, StoreFault> {
        self.0.writer.transact("session_update", &Update { id, decide, ids }).await
    }

    async fn find(&self, id: SessionId) -> Result<Option<Session>, StoreFault> {
        self.find_one(BY_ID, id.get().into()).await
    }

    async fn find_open(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        self.find_one(OPEN_BY_USER, user.as_str().into()).await
    }

    async fn find_latest_ended(&self, user: &UserId) -> Result<Option<Session>, StoreFault> {
        self.find_one(LATEST_ENDED, user.as_str().into()).await
    }

    async fn list_open_after(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<Session>, StoreFault> {
        let values = [after.map_or(0, SessionId::get).into(), limit.into()];
        Ok(rows::committed::<Entity, _>(&self.0.readers, OPEN_AFTER, values).await?)
    }

    async fn list_owned(&self, admin: &AdminId) -> Result<Vec<Session>, StoreFault> {
        let admin = admin.as_str().into();
        Ok(rows::committed::<Entity, _>(&self.0.readers, OWNED, [admin]).await?)
    }

    async fn list_tips(&self, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, StoreFault> {
        Ok(tips(&self.0, ids).await?)
    }
}

impl SqliteSessionStore {
    async fn find_one(
        &self,
        sql: &str,
        key: sea_orm::Value,
    ) -> Result<Option<Session>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0.readers, sql, [key]).await?.pop())
    }
}

async fn tips(database: &Database, ids: &[SessionId]) -> Result<BTreeMap<SessionId, Seq>, Failure> {
    let statement = rows::statement(TIPS, [rows::json(ids)?]);
    let found = database.readers.query_all_raw(statement).await?;
    let known: BTreeMap<i64, SessionId> = ids.iter().map(|id| (id.get(), *id)).collect();
    let mut tips = BTreeMap::new();
    for row in found {
        let (id, last_seq): (i64, i64) = row.try_get_many_by_index()?;
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

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<Opened>, Failure> {
        let open = open_of(transaction, self.user).await?;
        match (self.decide)(open.as_ref(), self.ids) {
            OpenVerdict::Keep(session) => Ok(Outcome::Leave(opened(session))),
            OpenVerdict::Refresh(session) => {
                update(transaction, &session).await?;
                Ok(Outcome::Commit(opened(session)))
            }
            OpenVerdict::Insert(session, events) => {
                rows::write(transaction, &INSERT, &[Model::from(&session)]).await?;
                write_events(transaction, &events).await?;
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

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<Updated>, Failure> {
        let Some(before) = locked(transaction, &[self.id]).await?.pop() else {
            return Ok(Outcome::Leave(Updated::Missing));
        };
        match (self.decide)(&before, self.ids) {
            SessionVerdict::Keep => Ok(Outcome::Leave(Updated::Kept(before))),
            SessionVerdict::Refuse(refusal) => Ok(Outcome::Leave(Updated::Refused(refusal))),
            SessionVerdict::Write(after, events) => {
                update(transaction, &after).await?;
                write_events(transaction, &events).await?;
                Ok(Outcome::Commit(Updated::Written(after, events)))
            }
        }
    }
}

async fn update(transaction: &DatabaseTransaction, after: &Session) -> Result<(), Failure> {
    match rows::write(transaction, &UPDATE, &[Model::from(after)]).await? {
        1 => Ok(()),
        _ => Err(Failure::Forbidden("a session's key, status, owner or tip is changed")),
    }
}

/// The sessions of `ids` that exist, by id.
pub(crate) async fn locked(
    transaction: &DatabaseTransaction,
    ids: &[SessionId],
) -> Result<Vec<Session>, Failure> {
    rows::locked::<Entity, _>(transaction, BY_IDS, [rows::json(ids)?]).await
}

pub(crate) async fn open_of(
    transaction: &DatabaseTransaction,
    user: &UserId,
) -> Result<Option<Session>, Failure> {
    let user = user.as_str().into();
    Ok(rows::locked::<Entity, _>(transaction, OPEN_BY_USER, [user]).await?.pop())
}
