//! [`NoteStore`].

use std::sync::Arc;

use async_trait::async_trait;
use kefu_console::{Note, NoteDecision, NoteRequest, NoteSnapshot, NoteStore, NoteVerdict};
use kefu_core::{AdminId, IdSource, NoteId, Page, PageLimit, SessionId, StoreFault};
use kefu_entities::note::{Entity, Model};
use kefu_session::Session;

use crate::bulk::Bulk;
use crate::error::Failure;
use crate::open::Database;
use crate::outbox::add_events;
use crate::rows::{self, Query, query};
use crate::session;
use crate::transaction::{Outcome, Transaction, Work};

const BY_ID: &str = "SELECT * FROM cg_chat_note WHERE note_id = $1";
const BY_KEY: &str = "SELECT * FROM cg_chat_note \
     WHERE session_id = $1 AND admin_id = $2 AND client_msg_id = $3";
const BELOW: &str = "SELECT * FROM cg_chat_note WHERE session_id = $1 AND note_id < $2 \
     ORDER BY note_id DESC LIMIT $3";

/// Notes in PostgreSQL.
pub(crate) struct PgNoteStore(pub(crate) Arc<Database>);

#[async_trait]
impl NoteStore for PgNoteStore {
    async fn add(
        &self,
        author: &AdminId,
        request: &NoteRequest,
        decide: NoteDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<NoteVerdict, StoreFault> {
        self.0.transact("note_add", &Add { author, request, decide, ids }).await
    }

    async fn find(&self, id: NoteId) -> Result<Option<Note>, StoreFault> {
        Ok(rows::committed::<Entity, _>(&self.0, query(BY_ID).bind(id.get())).await?.pop())
    }

    async fn list(
        &self,
        session: SessionId,
        before: Option<NoteId>,
        limit: PageLimit,
    ) -> Result<Page<Note>, StoreFault> {
        let list = below(session, before, limit.get() + 1);
        let last = rows::committed::<Entity, _>(&self.0, list).await?;
        let mut page = Page::from_overfetched(last, limit);
        page.items.reverse();
        Ok(page)
    }
}

fn below(session: SessionId, before: Option<NoteId>, limit: u32) -> Query<'static> {
    let before = before.map_or(i64::MAX, NoteId::get);
    query(BELOW).bind(session.get()).bind(before).bind(i64::from(limit))
}

struct Add<'a> {
    author: &'a AdminId,
    request: &'a NoteRequest,
    decide: NoteDecision<'a>,
    ids: &'a dyn IdSource,
}

impl Work for Add<'_> {
    type Output = NoteVerdict;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<NoteVerdict>, Failure> {
        let verdict = (self.decide)(&self.snapshot(transaction).await?, self.ids);
        let NoteVerdict::Store(note, event) = &verdict else {
            return Ok(Outcome::Leave(verdict));
        };
        let mut bulk = Bulk::default();
        bulk.insert::<Entity>(&[Model::from(note)])?;
        add_events(&mut bulk, std::slice::from_ref(event))?;
        bulk.run(transaction).await?;
        Ok(Outcome::Commit(verdict))
    }
}

impl Add<'_> {
    async fn snapshot(&self, transaction: &mut Transaction) -> Result<NoteSnapshot, Failure> {
        let id = self.request.session_id;
        let session: Option<Session> = session::lock(transaction, &[id]).await?.pop();
        let users_open = match &session {
            Some(session) => session::open_of(transaction, &session.user.user_id).await?,
            None => None,
        };
        let earlier = match &self.request.key {
            Some(key) => {
                let find =
                    query(BY_KEY).bind(id.get()).bind(self.author.as_str()).bind(key.as_str());
                rows::read::<Entity, _>(transaction, find).await?.pop()
            }
            None => None,
        };
        let last: Vec<Note> = rows::read::<Entity, _>(transaction, below(id, None, 1)).await?;
        let last = last.first().map(|note| note.id);
        Ok(NoteSnapshot { session, users_open, earlier, last })
    }
}
