//! [`NoteStore`].

use async_trait::async_trait;
use kefu_console::{Note, NoteDecision, NoteRequest, NoteSnapshot, NoteStore, NoteVerdict};
use kefu_core::{AdminId, IdSource, NoteId, Page, PageLimit, SessionId, StoreFault};

use crate::MemoryWorld;
use crate::table::Tables;

#[async_trait]
impl NoteStore for MemoryWorld {
    async fn add(
        &self,
        author: &AdminId,
        request: &NoteRequest,
        decide: NoteDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<NoteVerdict, StoreFault> {
        let mut tables = self.begin().await;
        let verdict = decide(&snapshot(&tables, author, request), ids);
        if let NoteVerdict::Store(note, event) = &verdict {
            tables.write_note(note, event)?;
        }
        Ok(verdict)
    }

    async fn find(&self, id: NoteId) -> Result<Option<Note>, StoreFault> {
        Ok(self.begin().await.notes.find(id).cloned())
    }

    async fn list(
        &self,
        session: SessionId,
        before: Option<NoteId>,
        limit: PageLimit,
    ) -> Result<Page<Note>, StoreFault> {
        let tables = self.begin().await;
        let last = tables.notes.last_below(session, before).cloned();
        let last = last.take(limit.get() as usize + 1).collect();
        let mut page = Page::from_overfetched(last, limit);
        page.items.reverse();
        Ok(page)
    }
}

fn snapshot(tables: &Tables, author: &AdminId, request: &NoteRequest) -> NoteSnapshot {
    let session = tables.sessions.find(request.session_id).cloned();
    let users_open = session
        .as_ref()
        .and_then(|session| tables.sessions.find_open(&session.user.user_id).cloned());
    let key = request.key.as_ref();
    let earlier = key.and_then(|key| tables.notes.find_key(request.session_id, author, key));
    let last = tables.notes.last_below(request.session_id, None).next();
    NoteSnapshot { session, users_open, earlier: earlier.cloned(), last: last.map(|note| note.id) }
}
