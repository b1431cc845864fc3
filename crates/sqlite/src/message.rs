//! [`MessageStore`].

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{IdSource, MsgId, Page, PageLimit, Person, Seq, SessionId, StoreFault};
use kefu_entities::message::Entity;
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendVerdict, Message, MessageStore, ReceiptDecision,
    ReceiptRequest, ReceiptVerdict, Side, Window,
};
use sea_orm::{ConnectionTrait, Value};

use crate::append::Append;
use crate::error::Failure;
use crate::open::Database;
use crate::receipt::Record;
use crate::rows;

const BY_ID: &str = "SELECT * FROM cg_chat_message WHERE msg_id = ?1";
const AFTER: &str = "SELECT * FROM cg_chat_message \
     WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
const BEFORE: &str = "SELECT * FROM cg_chat_message \
     WHERE session_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
/// The receiver's sessions first, each with the index of what is undelivered.
const UNDELIVERED_TO_USER: &str = "SELECT m.* FROM cg_chat_session AS s \
     CROSS JOIN cg_chat_message AS m \
     WHERE s.user_id = ?1 AND (?2 IS NULL OR s.id = ?2) \
       AND m.session_id = s.id AND m.status IN ('pending', 'failed') AND m.sender_type <> 'user' \
     ORDER BY m.msg_id LIMIT ?3";
const UNDELIVERED_TO_AGENT: &str = "SELECT m.* FROM cg_chat_session AS s \
     CROSS JOIN cg_chat_message AS m \
     WHERE s.admin_id = ?1 AND s.status = 1 AND (?2 IS NULL OR s.id = ?2) \
       AND m.session_id = s.id AND m.status IN ('pending', 'failed') AND m.sender_type = 'user' \
     ORDER BY m.msg_id LIMIT ?3";
const UNREAD: &str = "SELECT m.session_id, COUNT(*) FROM json_each(?1) AS j \
     CROSS JOIN cg_chat_message AS m \
     WHERE m.session_id = j.value AND m.status <> 'read' AND (m.sender_type = 'user') = ?2 \
     GROUP BY m.session_id";
/// Every table whose key is a snowflake (T3); outbox rows are trimmed, so of those the highest ever.
const HIGHEST_ID: &str = "SELECT MAX( \
     (SELECT COALESCE(MAX(id), 0) FROM cg_chat_session), \
     (SELECT COALESCE(MAX(msg_id), 0) FROM cg_chat_message), \
     (SELECT COALESCE(MAX(id), 0) FROM cg_chat_assignment), \
     (SELECT COALESCE(MAX(note_id), 0) FROM cg_chat_note), \
     (SELECT COALESCE(MAX(id), 0) FROM cg_chat_canned), \
     (SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'cg_chat_outbox'), \
     (SELECT COALESCE(MAX(last_assigned), 0) FROM cg_chat_agent))";

/// Messages in SQLite.
pub(crate) struct SqliteMessageStore(pub(crate) Arc<Database>);

#[async_trait]
impl MessageStore for SqliteMessageStore {
    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        self.0.writer.transact("append", &Append { batch, decide, ids }).await
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        self.0.writer.transact("record", &Record { batch, decide }).await
    }

    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
        Ok(self.list(BY_ID, [id.get().into()]).await?.pop())
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        let page =
            |sql, seq: Seq| self.list(sql, [session.get().into(), seq.0.into(), one_more(limit)]);
        match window {
            Window::After(seq) => Ok(Page::from_overfetched(page(AFTER, seq).await?, limit)),
            Window::Before(seq) => {
                let mut page = Page::from_overfetched(page(BEFORE, seq).await?, limit);
                page.items.reverse();
                Ok(page)
            }
        }
    }

    async fn list_undelivered(
        &self,
        receiver: &Person,
        session: Option<SessionId>,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        let (sql, receiver) = match receiver {
            Person::User(user) => (UNDELIVERED_TO_USER, user.as_str()),
            Person::Agent(admin) => (UNDELIVERED_TO_AGENT, admin.as_str()),
        };
        let session = session.map(SessionId::get).into();
        let oldest = self.list(sql, [receiver.into(), session, one_more(limit)]).await?;
        Ok(Page::from_overfetched(oldest, limit))
    }

    async fn count_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, StoreFault> {
        Ok(self.read_unread(sessions, reader).await?)
    }

    async fn highest_id(&self) -> Result<i64, StoreFault> {
        Ok(self.read_highest_id().await?)
    }
}

impl SqliteMessageStore {
    async fn list<const N: usize>(
        &self,
        sql: &str,
        values: [Value; N],
    ) -> Result<Vec<Message>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0.readers, sql, values).await?)
    }

    async fn read_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, Failure> {
        let known: BTreeMap<i64, SessionId> = sessions.iter().map(|id| (id.get(), *id)).collect();
        let distinct: Vec<_> = known.values().collect();
        let by_user = reader.other() == Side::User;
        let statement = rows::statement(UNREAD, [rows::json(&distinct)?, by_user.into()]);
        let mut unread = BTreeMap::new();
        for row in self.0.readers.query_all_raw(statement).await? {
            let (id, count): (i64, i64) = row.try_get_many_by_index()?;
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            unread.extend(known.get(&id).map(|id| (*id, count)));
        }
        Ok(unread)
    }

    async fn read_highest_id(&self) -> Result<i64, Failure> {
        let row = self.0.readers.query_one_raw(rows::statement(HIGHEST_ID, [])).await?;
        Ok(row.map(|row| row.try_get_by_index(0)).transpose()?.unwrap_or(0))
    }
}

/// One row more than the page holds tells whether there are more.
fn one_more(limit: PageLimit) -> Value {
    (limit.get() + 1).into()
}
