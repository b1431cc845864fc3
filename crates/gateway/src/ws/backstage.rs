//! Frames about what agents have among themselves: past sessions, private notes and canned replies.

use std::sync::Arc;

use kefu_console::{NoteRequest, Shelf};
use kefu_core::Caller;
use kefu_protocol::{
    CannedItem, CannedList, CannedListRequest, CannedPut, CannedRef, CannedScope, CannedStored,
    NoteAdd, NoteList, NoteListRequest, NoteObject, ServerFrame, SessionListRequest, SessionsList,
};
use kefu_session::Refusal;
use kefu_upload::UploadPath;

use super::answer::Answer;
use super::frames::Case;
use crate::state::Gateway;

impl Case {
    pub(super) async fn list_sessions(
        self,
        request: SessionListRequest,
        gateway: Arc<Gateway>,
    ) -> Answer {
        let Some(wanted) = request.wanted() else {
            return self.call.refuse(&Refusal::BadRequest("sessionId is missing").into());
        };
        let (search, limit) = (request.search(), request.limit);
        let list =
            self.desk.list_sessions(&self.caller, wanted, search, request.cursor, limit).await;
        let sign = |path: &UploadPath| gateway.registry.sign(path);
        self.answer(
            list.map(|list| {
                ServerFrame::SessionsList(SessionsList::new(request.scope, &list, &sign))
            }),
        )
    }

    pub(super) async fn add_note(self, note: NoteAdd) -> Answer {
        let request = NoteRequest {
            session_id: note.session_id,
            content: note.content,
            key: note.client_msg_id,
            origin: self.origin.0,
        };
        let added = self.desk.add_note(&self.caller, &request, &self.call.trace).await;
        self.answer(added.map(|note| ServerFrame::NoteNew(NoteObject::new(&note, true))))
    }

    pub(super) async fn list_notes(self, list: NoteListRequest) -> Answer {
        let NoteListRequest { session_id, before, limit } = list;
        let page = self.desk.list_notes(&self.caller, session_id, before, limit).await;
        let reader = self.caller.admin_id();
        self.answer(
            page.map(|page| ServerFrame::NoteList(NoteList::new(session_id, &page, reader))),
        )
    }

    pub(super) async fn list_canned(self, list: CannedListRequest) -> Answer {
        let page =
            self.desk.list_canned(&self.caller, &list.query, list.offset(), list.limit).await;
        self.answer(page.map(|page| ServerFrame::CannedList(CannedList::new(&list, &page))))
    }

    pub(super) async fn put_canned(self, put: CannedPut) -> Answer {
        let shelf = shelf(put.scope, &self.caller);
        let stored = self.desk.put_canned(&self.caller, shelf.as_ref(), &put.request()).await;
        self.answer(
            stored.map(|reply| {
                ServerFrame::CannedPut(CannedStored { item: CannedItem::from(&reply) })
            }),
        )
    }

    pub(super) async fn delete_canned(self, reply: CannedRef) -> Answer {
        let deleted = self.desk.delete_canned(&self.caller, reply.id).await;
        self.answer(deleted.map(|()| ServerFrame::CannedDelete(reply)))
    }
}

/// The shelf that a scope means to `caller`; users have none.
fn shelf(scope: CannedScope, caller: &Caller) -> Option<Shelf> {
    match scope {
        CannedScope::Team => Some(Shelf::Team),
        CannedScope::Mine => caller.admin_id().cloned().map(Shelf::Own),
    }
}
