//! The ports a desk stands on: what must survive, what may be lost, and the people connected.

use std::sync::Arc;

use async_trait::async_trait;
use kefu_assignment::{AssignLock, AssignmentStore};
use kefu_console::{CannedStore, NoteStore};
use kefu_core::{ConnId, Person, Seq, SessionId};
use kefu_events::Outbox;
use kefu_messaging::{MessageStore, Push, Pusher, Reach, SessionSearch};
use kefu_presence::{AgentDirectory, PresenceStore};
use kefu_queue::WaitingLine;
use kefu_session::SessionStore;
use kefu_upload::UploadLedger;

/// The authority (A1): one SQL database behind several narrow ports.
#[derive(Clone)]
pub struct Stores {
    /// Sessions, except what changes a load.
    pub sessions: Arc<dyn SessionStore>,
    /// Reads of agents.
    pub agents: Arc<dyn AgentDirectory>,
    /// Everything that changes a load.
    pub assignments: Arc<dyn AssignmentStore>,
    /// Reads of the line.
    pub line: Arc<dyn WaitingLine>,
    /// Messages and receipts.
    pub messages: Arc<dyn MessageStore>,
    /// Rows of uploads.
    pub uploads: Arc<dyn UploadLedger>,
    /// Private notes.
    pub notes: Arc<dyn NoteStore>,
    /// Canned replies.
    pub canned: Arc<dyn CannedStore>,
    /// Sessions in lists, and what was said in them.
    pub search: Arc<dyn SessionSearch>,
    /// Committed events.
    pub outbox: Arc<dyn Outbox>,
}

/// What may be lost without losing content (A1).
#[derive(Clone)]
pub struct Coordination {
    /// Leases of connections.
    pub presence: Arc<dyn PresenceStore>,
    /// The lock of Z4.
    pub assign_lock: Arc<dyn AssignLock>,
}

/// How far one connection has been served in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The connection.
    pub conn: ConnId,
    /// Whose it is.
    pub person: Person,
    /// The session.
    pub session_id: SessionId,
    /// The highest position up to which everything was written to it.
    pub written: Seq,
}

/// The live connections of this node: what a gateway implements.
///
/// # Contract
/// - `positions` names only sessions that the connection's person takes part in; a session that was
///   removed from an agent, or ended, is no longer named (A3).
/// - `people` names every connection that was taken in, with its person.
/// - `push_one` keeps the order of [`Pusher::push`]; an unknown connection is ignored.
#[async_trait]
pub trait Connections: Pusher {
    /// How far every connection has been served (M5).
    fn positions(&self) -> Vec<Position>;

    /// Everybody connected to this node.
    fn people(&self) -> Vec<(ConnId, Person)>;

    /// Whether nobody is connected.
    fn is_empty(&self) -> bool {
        self.people().is_empty()
    }

    /// How many connections of `person` this node holds.
    fn count(&self, person: &Person) -> usize;

    /// Whether this node holds a connection of `person`.
    fn holds(&self, person: &Person) -> bool {
        self.count(person) > 0
    }

    /// Pushes to one connection only.
    async fn push_one(&self, conn: ConnId, push: &Push);

    /// Pushes to every supervisor connected, except to these people.
    async fn push_to_supervisors(&self, push: &Push, except: &[Person]);
}

/// A process that serves nobody directly, such as the queue drainer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoConnections;

#[async_trait]
impl Pusher for NoConnections {
    async fn push(&self, _: &Person, _: &Push, _: Option<ConnId>) -> Reach {
        Reach::default()
    }

    async fn push_to_consoles(&self, _: &Push) {}
}

#[async_trait]
impl Connections for NoConnections {
    fn positions(&self) -> Vec<Position> {
        Vec::new()
    }

    fn people(&self) -> Vec<(ConnId, Person)> {
        Vec::new()
    }

    fn count(&self, _: &Person) -> usize {
        0
    }

    async fn push_one(&self, _: ConnId, _: &Push) {}

    async fn push_to_supervisors(&self, _: &Push, _: &[Person]) {}
}
