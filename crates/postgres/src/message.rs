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

use crate::append::Append;
use crate::error::Failure;
use crate::guarded::Guarded;
use crate::open::Database;
use crate::receipt::Record;
use crate::rows::{self, Query, column, query};
use crate::session::raw;
use crate::timer::Timer;

const BY_ID: &str = "SELECT * FROM cg_chat_message WHERE msg_id = $1";
const AFTER: &str = "SELECT * FROM cg_chat_message \
     WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
const BEFORE: &str = "SELECT * FROM cg_chat_message \
     WHERE session_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3";
const UNDELIVERED_TO_USER: &str = "SELECT m.* FROM cg_chat_session AS s \
     JOIN cg_chat_message AS m ON m.session_id = s.id \
     WHERE s.user_id = $1 AND ($2::bigint IS NULL OR s.id = $2) \
       AND m.status IN ('pending', 'failed') AND m.sender_type <> 'user' \
     ORDER BY m.msg_id LIMIT $3";
const UNDELIVERED_TO_AGENT: &str = "SELECT m.* FROM cg_chat_session AS s \
     JOIN cg_chat_message AS m ON m.session_id = s.id \
     WHERE s.admin_id = $1 AND s.status = 1 AND ($2::bigint IS NULL OR s.id = $2) \
       AND m.status IN ('pending', 'failed') AND m.sender_type = 'user' \
     ORDER BY m.msg_id LIMIT $3";
const UNREAD: &str = "SELECT session_id, COUNT(*) FROM cg_chat_message \
     WHERE session_id = ANY($1) AND status <> 'read' AND (sender_type = 'user') = $2 \
     GROUP BY session_id";
/// Every table whose key is a snowflake (T3); of outbox rows the trimmer leaves the highest.
const HIGHEST_ID: &str = "SELECT GREATEST( \
     (SELECT MAX(id) FROM cg_chat_session), \
     (SELECT MAX(msg_id) FROM cg_chat_message), \
     (SELECT MAX(id) FROM cg_chat_assignment), \
     (SELECT MAX(note_id) FROM cg_chat_note), \
     (SELECT MAX(id) FROM cg_chat_canned), \
     (SELECT MAX(id) FROM cg_chat_outbox), \
     (SELECT MAX(last_assigned) FROM cg_chat_agent), 0)";

/// Messages in PostgreSQL.
pub(crate) struct PgMessageStore(pub(crate) Arc<Database>);

#[async_trait]
impl MessageStore for PgMessageStore {
    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        let append = Append { batch, decide, ids };
        let timer = Timer::start();
        match self.0.append_guarded(&append).await? {
            Guarded::Stored(verdict) => {
                timer.record("append");
                Ok(verdict)
            }
            Guarded::Left => self.0.transact("append_locked", &append).await,
        }
    }

    async fn record(
        &self,
        batch: &[ReceiptRequest],
        decide: ReceiptDecision<'_>,
    ) -> Result<ReceiptVerdict, StoreFault> {
        self.0.record(&Record { batch, decide }).await
    }

    async fn find(&self, id: MsgId) -> Result<Option<Message>, StoreFault> {
        Ok(self.list(query(BY_ID).bind(id.get())).await?.pop())
    }

    async fn history(
        &self,
        session: SessionId,
        window: Window,
        limit: PageLimit,
    ) -> Result<Page<Message>, StoreFault> {
        let page = |sql, seq: Seq| {
            self.list(query(sql).bind(session.get()).bind(seq.0).bind(one_more(limit)))
        };
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
        let list =
            query(sql).bind(receiver).bind(session.map(SessionId::get)).bind(one_more(limit));
        Ok(Page::from_overfetched(self.list(list).await?, limit))
    }

    async fn count_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, StoreFault> {
        Ok(self.read_unread(sessions, reader).await?)
    }

    async fn highest_id(&self) -> Result<i64, StoreFault> {
        Ok(highest_id(&self.0).await?)
    }
}

impl PgMessageStore {
    async fn list(&self, query: Query<'_>) -> Result<Vec<Message>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0, query).await?)
    }

    async fn read_unread(
        &self,
        sessions: &[SessionId],
        reader: Side,
    ) -> Result<BTreeMap<SessionId, u32>, Failure> {
        let known: BTreeMap<i64, SessionId> = sessions.iter().map(|id| (id.get(), *id)).collect();
        let by_user = reader.other() == Side::User;
        let mut unread = BTreeMap::new();
        for row in self.0.read(query(UNREAD).bind(raw(sessions)).bind(by_user)).await? {
            let (id, count): (i64, i64) = (column(&row, 0)?, column(&row, 1)?);
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            unread.extend(known.get(&id).map(|id| (*id, count)));
        }
        Ok(unread)
    }
}

/// The highest id ever stored.
pub(crate) async fn highest_id(database: &Database) -> Result<i64, Failure> {
    let rows = database.read(query(HIGHEST_ID)).await?;
    rows.first().map_or(Ok(0), |row| column(row, 0))
}

/// One row more than the page holds tells whether there are more.
fn one_more(limit: PageLimit) -> i64 {
    i64::from(limit.get() + 1)
}
