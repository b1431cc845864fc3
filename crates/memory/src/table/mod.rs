//! The tables, their constraints and their indexes.
//!
//! Every write has two halves: a `check…` of all that a transaction is about to write, then an
//! infallible write. A transaction checks everything before it writes anything.

mod agent;
mod canned;
mod message;
mod note;
mod outbox;
mod record;
mod search;
mod session;
mod upload;

use std::collections::HashSet;
use std::hash::Hash;

use kefu_assignment::{Change, Scope};
use kefu_console::{CannedReply, Note};
use kefu_core::StoreFault;
use kefu_events::Envelope;
use kefu_messaging::AppendVerdict;
use kefu_session::Session;

use agent::AgentTable;
use canned::CannedTable;
use message::MessageTable;
use note::NoteTable;
use outbox::OutboxTable;
use record::RecordTable;
use search::SearchTable;
use session::SessionTable;
use upload::UploadTable;

/// All tables of one world.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) sessions: SessionTable,
    pub(crate) agents: AgentTable,
    pub(crate) records: RecordTable,
    pub(crate) messages: MessageTable,
    pub(crate) uploads: UploadTable,
    pub(crate) notes: NoteTable,
    pub(crate) canned: CannedTable,
    pub(crate) search: SearchTable,
    pub(crate) outbox: OutboxTable,
    highest_id: i64,
}

impl Tables {
    /// The largest snowflake ever stored, in whatever table (T3).
    pub(crate) const fn highest_id(&self) -> i64 {
        self.highest_id
    }

    /// Writes one session and its events, or nothing.
    pub(crate) fn write_session(
        &mut self,
        session: &Session,
        events: &[Envelope],
    ) -> Result<(), StoreFault> {
        self.sessions.check(std::slice::from_ref(session))?;
        self.outbox.check(events)?;
        self.put_session(session.clone());
        self.put_events(events);
        Ok(())
    }

    /// Writes what an assignment decided, or nothing.
    pub(crate) fn write_change(
        &mut self,
        scope: &Scope,
        change: &Change,
    ) -> Result<(), StoreFault> {
        self.agents.check(&scope.agents, &change.agents)?;
        self.sessions.check_known(&scope.sessions, &change.sessions)?;
        self.sessions.check(&change.sessions)?;
        self.records.check(&change.records)?;
        self.outbox.check(&change.events)?;
        for agent in &change.agents {
            self.agents.put(agent.clone());
        }
        for session in &change.sessions {
            self.put_session(session.clone());
        }
        for record in &change.records {
            self.stored(record.id.get());
            self.records.insert(record.clone());
        }
        self.put_events(&change.events);
        Ok(())
    }

    /// Writes what a batch of sends decided, or nothing.
    pub(crate) fn write_append(&mut self, verdict: &AppendVerdict) -> Result<(), StoreFault> {
        self.messages.check(&verdict.messages, &self.sessions)?;
        self.sessions.check_tips(&verdict.tips)?;
        self.outbox.check(&verdict.events)?;
        for message in &verdict.messages {
            self.stored(message.msg_id.get());
            self.uploads.refer(&message.content);
            self.messages.insert(message.as_ref().clone());
        }
        for tip in &verdict.tips {
            self.sessions.put_tip(tip);
        }
        self.put_events(&verdict.events);
        Ok(())
    }

    /// Writes a note and its event, or nothing.
    pub(crate) fn write_note(&mut self, note: &Note, event: &Envelope) -> Result<(), StoreFault> {
        ensure(self.sessions.find(note.session_id).is_some(), "a note of an unknown session")?;
        self.notes.check(note)?;
        self.outbox.check(std::slice::from_ref(event))?;
        self.stored(note.id.get());
        self.notes.insert(note.clone());
        self.put_events(std::slice::from_ref(event));
        Ok(())
    }

    /// Writes a canned reply, or nothing.
    pub(crate) fn write_canned(&mut self, reply: &CannedReply) -> Result<(), StoreFault> {
        self.canned.check(reply)?;
        self.stored(reply.id.get());
        self.canned.put(reply.clone());
        Ok(())
    }

    fn put_session(&mut self, session: Session) {
        self.stored(session.id.get());
        self.search.begin(session.id, session.started_at);
        self.sessions.put(session);
    }

    fn put_events(&mut self, events: &[Envelope]) {
        for event in events {
            self.stored(event.id.get());
            self.outbox.insert(event);
        }
    }

    fn stored(&mut self, id: i64) {
        self.highest_id = self.highest_id.max(id);
    }
}

/// Refuses what breaks `constraint`.
fn ensure(holds: bool, constraint: &'static str) -> Result<(), StoreFault> {
    if holds { Ok(()) } else { Err(StoreFault::internal(constraint)) }
}

/// Refuses keys that are not unique among themselves.
fn ensure_unique<K: Eq + Hash>(
    keys: impl IntoIterator<Item = K>,
    constraint: &'static str,
) -> Result<(), StoreFault> {
    let mut seen = HashSet::new();
    ensure(keys.into_iter().all(|key| seen.insert(key)), constraint)
}
