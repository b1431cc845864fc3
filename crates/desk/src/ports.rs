//! The ports a desk stands on, in two bundles: what must survive, and what may be lost.

use std::sync::Arc;

use kefu_assignment::{AssignLock, AssignmentStore};
use kefu_events::Outbox;
use kefu_messaging::MessageStore;
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
