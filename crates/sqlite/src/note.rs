//! [`NoteStore`].

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use kefu_console::{Note, NoteDecision, NoteRequest, NoteSnapshot, NoteStore, NoteVerdict};
use kefu_core::{AdminId, IdSource, NoteId, Page, PageLimit, SessionId, StoreFault};
use kefu_entities::note::{Entity, Model};
use kefu_session::Session;
use sea_orm::DatabaseTransaction;

use crate::error::Failure;
use crate::open::Database;
use crate::outbox::write_events;
use crate::rows;
use crate::session;
use crate::writer::{Outcome, Work};

const BY_ID: &str = "SELECT * FROM cg_chat_note WHERE note_id = ?1";
const BY_KEY: &str = "SELECT * FROM cg_chat_note \
     WHERE session_id = ?1 AND admin_id = ?2 AND client_msg_id = ?3";
const BELOW: &str = "SELECT * FROM cg_chat_note WHERE session_id = ?1 AND note_id < ?2 \
     ORDER BY note_id DESC LIMIT ?3";

static INSERT: LazyLock<String> = LazyLock::new(rows::insert_sql::<Entity>);

/// Notes in SQLite.
pub(crate) struct SqliteNoteStore(pub(crate) Arc<Database>);

#[async_trait]
impl NoteStore for SqliteNoteStore {
    async fn add(
        &self,
        author: &AdminId,
        request: &NoteRequest,
        decide: NoteDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<NoteVerdict, StoreFault> {
        self.0.writer.transact("note_add", &Add { author, request, decide, ids }).await
    }

    async fn find(&self, id: NoteId) -> Result<Option<Note>, StoreFault> {
        let id = id.get().into();
        Ok(rows::committed::<Entity, _>(&self.0.readers, BY_ID, [id]).await?.pop())
    }

    async fn list(
        &self,
        session: SessionId,
        before: Option<NoteId>,
        limit: PageLimit,
    ) -> Result<Page<Note>, StoreFault> {
        let values = below(session, before, limit.get() + 1);
        let last = rows::committed::<Entity, _>(&self.0.readers, BELOW, values).await?;
        let mut page = Page::from_overfetched(last, limit);
        page.items.reverse();
        Ok(page)
    }
}

fn below(session: SessionId, before: Option<NoteId>, limit: u32) -> [sea_orm::Value; 3] {
    let before = before.map_or(i64::MAX, NoteId::get);
    [session.get().into(), before.into(), limit.into()]
}

struct Add<'a> {
    author: &'a AdminId,
    request: &'a NoteRequest,
    decide: NoteDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Add<'_> {
    type Output = NoteVerdict;

    async fn run(
        &self,
        transaction: &DatabaseTransaction,
    ) -> Result<Outcome<NoteVerdict>, Failure> {
        let verdict = (self.decide)(&self.snapshot(transaction).await?, self.ids);
        let NoteVerdict::Store(note, event) = &verdict else {
            return Ok(Outcome::Leave(verdict));
        };
        rows::write(transaction, &INSERT, &[Model::from(note)]).await?;
        write_events(transaction, std::slice::from_ref(event)).await?;
        Ok(Outcome::Commit(verdict))
    }
}

impl Add<'_> {
    async fn snapshot(&self, transaction: &DatabaseTransaction) -> Result<NoteSnapshot, Failure> {
        let id = self.request.session_id;
        let session: Option<Session> = session::locked(transaction, &[id]).await?.pop();
        let users_open = match &session {
            Some(session) => session::open_of(transaction, &session.user.user_id).await?,
            None => None,
        };
        let earlier = match &self.request.key {
            Some(key) => {
                let values = [id.get().into(), self.author.as_str().into(), key.as_str().into()];
                rows::locked::<Entity, _>(transaction, BY_KEY, values).await?.pop()
            }
            None => None,
        };
        let last: Vec<Note> =
            rows::locked::<Entity, _>(transaction, BELOW, below(id, None, 1)).await?;
        let last = last.first().map(|note| note.id);
        Ok(NoteSnapshot { session, users_open, earlier, last })
    }
}
