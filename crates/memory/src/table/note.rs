//! `cg_chat_note`.

use std::collections::{BTreeMap, HashMap};

use kefu_console::Note;
use kefu_core::{AdminId, ClientMsgId, NoteId, SessionId, StoreFault};

use super::ensure;

/// Notes by id, and by their author's key.
#[derive(Default)]
pub(crate) struct NoteTable {
    rows: HashMap<NoteId, Note>,
    of_session: HashMap<SessionId, BTreeMap<NoteId, Note>>,
    keys: HashMap<(SessionId, AdminId, ClientMsgId), NoteId>,
}

impl NoteTable {
    pub(crate) fn find(&self, id: NoteId) -> Option<&Note> {
        self.rows.get(&id)
    }

    pub(crate) fn find_key(
        &self,
        session: SessionId,
        admin: &AdminId,
        key: &ClientMsgId,
    ) -> Option<&Note> {
        self.keys.get(&(session, admin.clone(), key.clone())).and_then(|id| self.rows.get(id))
    }

    /// A session's notes below `before`, the last first.
    pub(crate) fn last_below(
        &self,
        session: SessionId,
        before: Option<NoteId>,
    ) -> impl Iterator<Item = &Note> {
        let notes =
            self.of_session.get(&session).into_iter().flat_map(|notes| notes.values().rev());
        notes.filter(move |note| before.is_none_or(|before| note.id < before))
    }

    pub(crate) fn check(&self, note: &Note) -> Result<(), StoreFault> {
        ensure(!self.rows.contains_key(&note.id), "a note id is used twice")?;
        let taken = key_of(note).is_some_and(|key| self.keys.contains_key(&key));
        ensure(!taken, "a note's key is used twice")
    }

    pub(crate) fn insert(&mut self, note: Note) {
        if let Some(key) = key_of(&note) {
            self.keys.insert(key, note.id);
        }
        self.of_session.entry(note.session_id).or_default().insert(note.id, note.clone());
        self.rows.insert(note.id, note);
    }
}

fn key_of(note: &Note) -> Option<(SessionId, AdminId, ClientMsgId)> {
    Some((note.session_id, note.admin_id.clone(), note.key.clone()?))
}
