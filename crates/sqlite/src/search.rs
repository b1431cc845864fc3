//! [`SessionSearch`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::snowflake::floor_of;
use kefu_core::{Page, PageLimit, Seq, SessionId, StoreFault, Timestamp};
use kefu_entities::{message, session};
use kefu_messaging::{
    Message, OpenedSession, Progress, SearchEntry, SearchQuery, SessionFilter, SessionSearch,
    Unindexed, Wanted, Whose,
};
use kefu_session::Session;
use sea_orm::{ConnectionTrait, DatabaseTransaction, Value};

use crate::error::Failure;
use crate::open::Database;
use crate::rows;
use crate::writer::{Outcome, Work};

const LAST: &str = "SELECT m.* FROM cg_chat_session AS s \
     JOIN cg_chat_message AS m ON m.msg_id = s.last_msg_id \
     WHERE s.id IN (SELECT value FROM json_each(?1))";
/// An id is never older than its session, so that the key finds where they begin.
const OPENED: &str = "SELECT s.id, s.started_at, ( \
       SELECT m.create_time FROM cg_chat_message AS m \
       WHERE m.session_id = s.id AND m.sender_type = 'agent' ORDER BY m.seq LIMIT 1) \
     FROM cg_chat_session AS s WHERE s.id >= ?1 AND s.started_at >= ?2 ORDER BY s.id";
/// `CROSS JOIN` keeps the order of the loops: what is not final is far less than all sessions.
const BEHIND: &str = "SELECT s.id, i.upto FROM cg_chat_indexed AS i \
     CROSS JOIN cg_chat_session AS s ON s.id = i.session_id \
     WHERE i.is_final = 0 AND (s.status = 2 OR s.last_seq > i.upto AND i.indexed_at < ?1) \
     ORDER BY i.session_id LIMIT ?2";
const BY_IDS: &str =
    "SELECT * FROM cg_chat_session WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id";
const ADVANCE: &str = "UPDATE cg_chat_indexed SET upto = ?2, is_final = ?3, indexed_at = ?4 \
     WHERE session_id = ?1 AND is_final = 0 AND upto <= ?2";
const ENTRY: &str = "INSERT INTO cg_chat_term (session_id, part) VALUES (?1, ?2) \
     ON CONFLICT (session_id, part) DO UPDATE SET part = excluded.part RETURNING id";
const WORDS: &str = "INSERT OR REPLACE INTO cg_chat_term_index (rowid, words) VALUES (?1, ?2)";

/// Sessions in lists, in SQLite.
pub(crate) struct SqliteSessionSearch(pub(crate) Arc<Database>);

#[async_trait]
impl SessionSearch for SqliteSessionSearch {
    async fn list(
        &self,
        filter: &SessionFilter,
        before: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Session>, StoreFault> {
        let (sql, values) = list_sql(filter, before, limit);
        let found = rows::committed::<session::Entity, _>(&self.0.readers, &sql, values).await?;
        Ok(Page::from_overfetched(found, limit))
    }

    async fn list_last(
        &self,
        ids: &[SessionId],
    ) -> Result<BTreeMap<SessionId, Message>, StoreFault> {
        let values = [rows::json(ids)?];
        let last: Vec<Message> =
            rows::committed::<message::Entity, _>(&self.0.readers, LAST, values).await?;
        Ok(last.into_iter().map(|message| (message.session_id, message)).collect())
    }

    async fn list_opened(&self, since: Timestamp) -> Result<Vec<OpenedSession>, StoreFault> {
        Ok(opened(&self.0, since).await?)
    }

    async fn list_behind(
        &self,
        looked_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Unindexed>, StoreFault> {
        Ok(behind(&self.0, looked_before, limit).await?)
    }

    async fn write(
        &self,
        entries: &[SearchEntry],
        progress: &[Progress],
    ) -> Result<(), StoreFault> {
        self.0.writer.transact("search_write", &Write { entries, progress }).await
    }
}

/// A session is named once, however many of its entries fit.
fn list_sql(
    filter: &SessionFilter,
    before: Option<SessionId>,
    limit: PageLimit,
) -> (String, Vec<Value>) {
    let mut values: Vec<Value> = vec![before.map_or(i64::MAX, SessionId::get).into()];
    let mut sql = "SELECT s.* FROM cg_chat_session AS s WHERE s.id < ?1".to_owned();
    let mut bind = |value: Value| {
        values.push(value);
        format!("?{}", values.len())
    };
    let (user, admin) = match &filter.whose {
        Whose::User(user) => (Some(user), None),
        Whose::UserWith(user, admin) => (Some(user), Some(admin)),
        Whose::Agent(admin) => (None, Some(admin)),
        Whose::All => (None, None),
    };
    if let Some(user) = user {
        sql += &format!(" AND s.user_id = {}", bind(user.as_str().into()));
    }
    if let Some(admin) = admin {
        sql += &format!(" AND s.admin_id = {}", bind(admin.as_str().into()));
    }
    if let Some(query) = &filter.query {
        let pattern = bind(match_of(query).into());
        sql += &format!(
            " AND s.id IN (SELECT t.session_id FROM cg_chat_term_index \
             JOIN cg_chat_term AS t ON t.id = cg_chat_term_index.rowid \
             WHERE cg_chat_term_index MATCH {pattern})"
        );
    }
    let limit = bind((limit.get() + 1).into());
    sql += &format!(" ORDER BY s.id DESC LIMIT {limit}");
    (sql, values)
}

/// The conditions in the language of the full-text table. Words hold no quotes.
fn match_of(query: &SearchQuery) -> String {
    let wanted: Vec<_> = query
        .wanted()
        .map(|wanted| match wanted {
            Wanted::Exact(word) => format!("\"{word}\""),
            Wanted::Prefix(prefix) => format!("\"{prefix}\"*"),
        })
        .collect();
    wanted.join(" AND ")
}

async fn opened(database: &Database, since: Timestamp) -> Result<Vec<OpenedSession>, Failure> {
    let values = [floor_of(since).into(), since.0.into()];
    let rows = database.readers.query_all_raw(rows::statement(OPENED, values)).await?;
    let mut opened = Vec::with_capacity(rows.len());
    for row in rows {
        let (id, at, first_reply): (i64, i64, Option<i64>) = row.try_get_many_by_index()?;
        let session_id =
            SessionId::new(id).map_err(|_| Failure::Forbidden("a session has a bad id"))?;
        let first_reply = first_reply.map(Timestamp);
        opened.push(OpenedSession { session_id, at: Timestamp(at), first_reply });
    }
    Ok(opened)
}

async fn behind(
    database: &Database,
    looked_before: Timestamp,
    limit: u32,
) -> Result<Vec<Unindexed>, Failure> {
    let statement = rows::statement(BEHIND, [looked_before.0.into(), limit.into()]);
    let mut upto: BTreeMap<i64, i64> = BTreeMap::new();
    for row in database.readers.query_all_raw(statement).await? {
        upto.extend([row.try_get_many_by_index::<(i64, i64)>()?]);
    }
    let ids: Vec<_> = upto.keys().copied().collect();
    let values = [rows::json(&ids)?];
    let sessions: Vec<Session> =
        rows::committed::<session::Entity, _>(&database.readers, BY_IDS, values).await?;
    let unindexed = sessions.into_iter().filter_map(|session| {
        let upto = upto.get(&session.id.get()).copied().map(Seq)?;
        Some(Unindexed { session, upto })
    });
    Ok(unindexed.collect())
}

struct Write<'a> {
    entries: &'a [SearchEntry],
    progress: &'a [Progress],
}

impl Work for Write<'_> {
    type Output = ();

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<()>, Failure> {
        let mut accepted = BTreeSet::new();
        for progress in self.progress {
            let session = progress.session_id;
            let values = [
                session.get().into(),
                progress.upto.0.into(),
                progress.is_final.into(),
                progress.at.0.into(),
            ];
            if rows::execute(transaction, ADVANCE, values).await? > 0 {
                accepted.insert(session);
            }
        }
        for entry in self.entries.iter().filter(|entry| accepted.contains(&entry.session_id)) {
            write_entry(transaction, entry).await?;
        }
        match accepted.is_empty() {
            true => Ok(Outcome::Leave(())),
            false => Ok(Outcome::Commit(())),
        }
    }
}

async fn write_entry(
    transaction: &DatabaseTransaction,
    entry: &SearchEntry,
) -> Result<(), Failure> {
    let values = [entry.session_id.get().into(), entry.part.into()];
    let row = transaction.query_one_raw(rows::statement(ENTRY, values)).await?;
    let row = row.ok_or(Failure::Forbidden("an entry has no number"))?;
    let id: i64 = row.try_get_by_index(0)?;
    let words: Vec<_> = entry.words.iter().map(String::as_str).collect();
    rows::execute(transaction, WORDS, [id.into(), words.join(" ").into()]).await?;
    Ok(())
}
