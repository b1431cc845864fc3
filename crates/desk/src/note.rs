//! Private notes: adding, reading, and who is told (B95).

use std::sync::Arc;

use kefu_console::{FreshNote, Note, NoteRequest, NoteVerdict, decide_note};
use kefu_core::text::check_message_text;
use kefu_core::{Caller, NoteId, Page, PageLimit, Person, SessionId, StoreFault, TraceId, limit};
use kefu_events::Envelope;
use kefu_messaging::Push;
use kefu_session::{Refusal, Session};

use crate::fanout::Fanout;
use crate::read::not_for_users;
use crate::{Desk, DeskError, Stores};

/// A commit whose answer was lost is looked up by its key so many times.
const LOOKS: u32 = 3;

impl Desk {
    /// Adds a private note; again with the same key gives the same note.
    ///
    /// # Errors
    /// `forbidden` for users, `not_found` unless the caller may read the session (A3), `conflict` for a key that was
    /// used for another note, `content_empty` and `content_too_long`.
    pub async fn add_note(
        &self,
        caller: &Caller,
        request: &NoteRequest,
        trace: &TraceId,
    ) -> Result<Note, DeskError> {
        let admin = caller.admin_id().ok_or(Refusal::Forbidden)?;
        check_message_text(&request.content, limit::MAX_NOTE_CHARS)?;
        let context = self.source.context(trace.clone());
        let mut looks = 1;
        let verdict = loop {
            let added = self
                .stores
                .notes
                .add(
                    admin,
                    request,
                    &|snapshot, ids| decide_note(snapshot, caller, request, &context, ids),
                    self.source.ids(),
                )
                .await;
            match added.inspect_err(|fault| self.source.recover(fault)) {
                // With a key the same again is the same note, and tells whether it was stored.
                Err(StoreFault::Indeterminate { .. }) if request.key.is_some() && looks < LOOKS => {
                    looks += 1;
                }
                done => break done?,
            }
        };
        match verdict {
            NoteVerdict::Store(note, event) => {
                self.source.publish([event]);
                Ok(note)
            }
            NoteVerdict::Repeat(note) => Ok(note),
            NoteVerdict::Refuse(refusal) => Err(refusal.into()),
        }
    }

    /// A page of a session's notes, the last ones below `before`.
    ///
    /// # Errors
    /// `forbidden` for users, `not_found` unless the caller may read the session (A3).
    pub async fn list_notes(
        &self,
        caller: &Caller,
        session: SessionId,
        before: Option<NoteId>,
        limit: PageLimit,
    ) -> Result<Page<Note>, DeskError> {
        not_for_users(caller)?;
        self.readable(caller, session).await?;
        Ok(self.stores.notes.list(session, before, limit).await?)
    }
}

impl Fanout {
    /// Those who may read the session are told: who has it, the author's other devices, after the end who has its
    /// user now, and supervisors. Nobody of them is a user.
    pub(crate) async fn noted(&self, envelope: &Envelope, id: NoteId) -> Result<(), DeskError> {
        let fresh = envelope.attachment::<FreshNote>();
        let origin = fresh.as_ref().and_then(|fresh| fresh.origin);
        let note = match fresh {
            Some(fresh) => Arc::clone(&fresh.note),
            None => match self.stores.notes.find(id).await? {
                Some(note) => Arc::new(note),
                None => return Ok(()),
            },
        };
        let Some(session) = self.stores.sessions.find(note.session_id).await? else {
            return Ok(());
        };
        let author = Person::Agent(note.admin_id.clone());
        let mut told = readers(&self.stores, &session).await?;
        told.retain(|person| *person != author);
        told.push(author.clone());
        for person in &told {
            let push = Push::Note { note: Arc::clone(&note), own: *person == author };
            self.connections.push(person, &push, origin).await;
        }
        let push = Push::Note { note, own: false };
        self.connections.push_to_supervisors(&push, &told).await;
        Ok(())
    }
}

/// The agents who may read a session (A3).
async fn readers(stores: &Stores, session: &Session) -> Result<Vec<Person>, DeskError> {
    let mut readers: Vec<_> = session.admin_id.iter().cloned().collect();
    if !session.is_open() {
        let open = stores.sessions.find_open(&session.user.user_id).await?;
        readers.extend(open.and_then(|open| open.admin_id));
    }
    readers.dedup();
    Ok(readers.into_iter().map(Person::Agent).collect())
}
