//! [`SessionSearch`].

use std::collections::BTreeMap;
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
use sea_orm::sqlx;
use sqlx::AssertSqlSafe;

use crate::error::Failure;
use crate::open::Database;
use crate::rows::{self, Query, column, query};
use crate::session::raw;
use crate::transaction::{Outcome, Rows as _, Transaction, Work};

const LAST: &str = "SELECT m.* FROM cg_chat_session AS s \
     JOIN cg_chat_message AS m ON m.msg_id = s.last_msg_id WHERE s.id = ANY($1)";
/// An id is never older than its session, so that the key finds where they begin.
const OPENED: &str = "SELECT s.id, s.started_at, ( \
       SELECT m.create_time FROM cg_chat_message AS m \
       WHERE m.session_id = s.id AND m.sender_type = 'agent' ORDER BY m.seq LIMIT 1) \
     FROM cg_chat_session AS s WHERE s.id >= $1 AND s.started_at >= $2 ORDER BY s.id";
const BEHIND: &str = "SELECT s.*, i.upto FROM cg_chat_indexed AS i \
     JOIN cg_chat_session AS s ON s.id = i.session_id \
     WHERE NOT i.is_final AND (s.status = 2 OR s.last_seq > i.upto AND i.indexed_at < $1) \
     ORDER BY i.session_id LIMIT $2";
/// Locked in id order, so that two who write at once do not deadlock.
const LOCK: &str = "SELECT 1 FROM cg_chat_indexed WHERE session_id = ANY($1) ORDER BY session_id FOR NO KEY UPDATE";
/// Entries follow only where their session's progress does.
const WRITE: &str = "WITH advanced AS ( \
       UPDATE cg_chat_indexed AS i SET upto = n.upto, is_final = n.is_final, indexed_at = n.at \
       FROM UNNEST($1::bigint[], $2::bigint[], $3::boolean[], $4::bigint[]) \
         AS n (session_id, upto, is_final, at) \
       WHERE i.session_id = n.session_id AND NOT i.is_final AND i.upto <= n.upto \
       RETURNING i.session_id) \
     INSERT INTO cg_chat_term (session_id, part, words) \
     SELECT e.session_id, e.part, array_to_tsvector(string_to_array(e.words, ' ')) \
     FROM UNNEST($5::bigint[], $6::bigint[], $7::text[]) AS e (session_id, part, words) \
     JOIN advanced AS a ON a.session_id = e.session_id \
     ON CONFLICT (session_id, part) DO UPDATE SET words = excluded.words";

/// Sessions in lists, in PostgreSQL.
pub(crate) struct PgSessionSearch(pub(crate) Arc<Database>);

#[async_trait]
impl SessionSearch for PgSessionSearch {
    async fn list(
        &self,
        filter: &SessionFilter,
        before: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Session>, StoreFault> {
        let list = list_query(filter, before, limit);
        let found = rows::committed::<session::Entity, _>(&self.0, list).await?;
        Ok(Page::from_overfetched(found, limit))
    }

    async fn list_last(
        &self,
        ids: &[SessionId],
    ) -> Result<BTreeMap<SessionId, Message>, StoreFault> {
        let last = query(LAST).bind(raw(ids));
        let last: Vec<Message> = rows::committed::<message::Entity, _>(&self.0, last).await?;
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
        self.0.transact("search_write", &Write { entries, progress }).await
    }
}

/// A session is named once, however many of its entries fit. The text depends on the kind of filter only.
fn list_query(
    filter: &SessionFilter,
    before: Option<SessionId>,
    limit: PageLimit,
) -> Query<'static> {
    let (user, admin) = match &filter.whose {
        Whose::User(user) => (Some(user), None),
        Whose::UserWith(user, admin) => (Some(user), Some(admin)),
        Whose::Agent(admin) => (None, Some(admin)),
        Whose::All => (None, None),
    };
    let texts = [
        user.map(|user| ("s.user_id = ", user.to_string(), "")),
        admin.map(|admin| ("s.admin_id = ", admin.to_string(), "")),
        filter.query.as_ref().map(|wanted| {
            let within = "s.id IN (SELECT t.session_id FROM cg_chat_term AS t \
                 WHERE t.words @@ CAST(";
            (within, match_of(wanted), " AS tsquery))")
        }),
    ];
    let mut sql = "SELECT s.* FROM cg_chat_session AS s WHERE s.id < $1".to_owned();
    let texts: Vec<_> = texts.into_iter().flatten().collect();
    for (place, (left, _, right)) in texts.iter().enumerate() {
        sql += &format!(" AND {left}${}{right}", place + 3);
    }
    sql += " ORDER BY s.id DESC LIMIT $2";
    let list = sqlx::query(AssertSqlSafe(sql))
        .bind(before.map_or(i64::MAX, SessionId::get))
        .bind(i64::from(limit.get() + 1));
    texts.into_iter().fold(list, |list, (_, text, _)| list.bind(text))
}

/// The conditions as a `tsquery`. Words hold neither quotes nor backslashes.
fn match_of(query: &SearchQuery) -> String {
    let wanted: Vec<_> = query
        .wanted()
        .map(|wanted| match wanted {
            Wanted::Exact(word) => format!("'{word}'"),
            Wanted::Prefix(prefix) => format!("'{prefix}':*"),
        })
        .collect();
    wanted.join(" & ")
}

async fn opened(database: &Database, since: Timestamp) -> Result<Vec<OpenedSession>, Failure> {
    let rows = database.read(query(OPENED).bind(floor_of(since)).bind(since.0)).await?;
    let mut opened = Vec::with_capacity(rows.len());
    for row in &rows {
        let session_id = SessionId::new(column(row, 0)?)
            .map_err(|_| Failure::Forbidden("a session has a bad id"))?;
        let first_reply = column::<Option<i64>>(row, 2)?.map(Timestamp);
        let at = Timestamp(column(row, 1)?);
        opened.push(OpenedSession { session_id, at, first_reply });
    }
    Ok(opened)
}

async fn behind(
    database: &Database,
    looked_before: Timestamp,
    limit: u32,
) -> Result<Vec<Unindexed>, Failure> {
    let list = query(BEHIND).bind(looked_before.0).bind(i64::from(limit));
    let found = database.read(list).await?;
    let upto: Vec<Seq> = found
        .iter()
        .map(|row| Ok(Seq(sqlx::Row::try_get(row, "upto")?)))
        .collect::<Result<_, Failure>>()?;
    let sessions: Vec<Session> = rows::domain::<session::Entity, _>(found)?;
    let unindexed = sessions.into_iter().zip(upto);
    Ok(unindexed.map(|(session, upto)| Unindexed { session, upto }).collect())
}

struct Write<'a> {
    entries: &'a [SearchEntry],
    progress: &'a [Progress],
}

impl Work for Write<'_> {
    type Output = ();

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<()>, Failure> {
        let progress = self.progress;
        let ids: Vec<_> = progress.iter().map(|of| of.session_id).collect();
        transaction.query(query(LOCK).bind(raw(&ids))).await?;
        let sessions: Vec<_> = self.entries.iter().map(|entry| entry.session_id).collect();
        let words = self.entries.iter().map(|entry| {
            let words: Vec<_> = entry.words.iter().map(String::as_str).collect();
            words.join(" ")
        });
        let write = query(WRITE)
            .bind(raw(&ids))
            .bind(progress.iter().map(|of| of.upto.0).collect::<Vec<_>>())
            .bind(progress.iter().map(|of| of.is_final).collect::<Vec<_>>())
            .bind(progress.iter().map(|of| of.at.0).collect::<Vec<_>>())
            .bind(raw(&sessions))
            .bind(self.entries.iter().map(|entry| entry.part).collect::<Vec<_>>())
            .bind(words.collect::<Vec<_>>());
        transaction.execute(write).await?;
        Ok(Outcome::Commit(()))
    }
}
