//! What a desk needs besides when other processes serve the same tables: the ports between nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::LoadBoard;
use kefu_console::PageView;
use kefu_core::{MsgId, NodeName, Person, Seq, SessionId, StoreFault, Timestamp, TraceId};
use kefu_events::Envelope;
use kefu_messaging::{Message, MessageStatus};
use tokio::sync::mpsc;

/// The ports between nodes.
#[derive(Clone)]
pub struct Cluster {
    /// Between this node and the others.
    pub nodes: Arc<dyn NodeBus>,
    /// Copies for systems that look without asking SQL.
    pub board: Arc<dyn LoadBoard>,
    /// Who does what only one process should do at a time.
    pub tasks: Arc<dyn TaskLeases>,
}

/// What one node tells another (N1). Nothing here is a fact of its own: what gets lost is read from SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// Something committed that concerns people of the other node.
    Event {
        /// The event.
        envelope: Envelope,
        /// The message of a `MessageStored`, which the other node would otherwise read back.
        message: Option<Arc<Message>>,
    },
    /// What people of a node look at beyond their own sessions. Replaces what it said before, and has to be said
    /// again to hold.
    Watching {
        /// The node.
        node: NodeName,
        /// The sessions that supervisors watch there.
        sessions: BTreeSet<SessionId>,
        /// Whether somebody looks at the board there.
        board: bool,
    },
    /// A push that no event stands for.
    Push {
        /// Whom it is for.
        to: Person,
        /// What is pushed.
        push: Relayed,
        /// The frame that caused it, if one did.
        trace_id: Option<TraceId>,
    },
}

impl NodeMessage {
    /// What kind of word it is, for metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Event { envelope, .. } => envelope.event.kind(),
            Self::Push { push: Relayed::PeerAck { .. }, .. } => "peer_ack",
            Self::Push { push: Relayed::Typing { .. }, .. } => "typing",
            Self::Push { push: Relayed::OfflineNotice, .. } => "offline_notice",
            Self::Push { push: Relayed::Read { .. }, .. } => "read",
            Self::Push { push: Relayed::Page { .. }, .. } => "page",
            Self::Watching { .. } => "watching",
        }
    }
}

/// The pushes that no event stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relayed {
    /// `chat.message.peer_ack`.
    PeerAck {
        /// The session.
        session_id: SessionId,
        /// The message.
        msg_id: MsgId,
        /// Its position.
        seq: Seq,
        /// What was reported.
        status: MessageStatus,
    },
    /// `chat.typing`.
    Typing {
        /// The session.
        session_id: SessionId,
        /// Whether the other side types.
        is_typing: bool,
    },
    /// `chat.offline_notice`.
    OfflineNotice,
    /// `chat.session.read`.
    Read {
        /// The session.
        session_id: SessionId,
        /// Up to where.
        seq: Seq,
    },
    /// `chat.page`.
    Page {
        /// The session.
        session_id: SessionId,
        /// What its visitor looks at.
        page: Arc<PageView>,
        /// Since when.
        time: Timestamp,
    },
}

/// Whom a word is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// These nodes.
    Nodes(BTreeSet<NodeName>),
    /// Every other node.
    Others,
}

/// What a node hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Another node's word.
    Message(NodeMessage),
    /// Something may have been missed before what comes next: the connection was lost, or this node
    /// did not listen fast enough.
    Gap,
}

/// The wire between nodes.
///
/// # Contract
/// - At most once. What one node says to another arrives in the order in which it was said.
/// - Nobody hears themselves.
/// - `say` is `send` and `broadcast` of each word, in this order; after an error any of them may have
///   been said.
/// - After any possible loss the subscriber hears [`Heard::Gap`] before anything said later.
/// - `subscribe` is called once a process; what was said before is not heard. The queue is bounded: a
///   subscriber that does not keep up misses messages, and hears a gap for them.
///
/// # Errors
/// [`StoreFault::Unavailable`]: the message is lost; nobody waits for it to come back.
#[async_trait]
pub trait NodeBus: Send + Sync {
    /// Says several things, in this order.
    ///
    /// As it is here, it waits for each; a wire with a round trip says them in one go.
    async fn say(&self, words: &[(Audience, NodeMessage)]) -> Result<(), StoreFault> {
        for (audience, word) in words {
            match audience {
                Audience::Nodes(nodes) => self.send(nodes, word).await?,
                Audience::Others => self.broadcast(word).await?,
            }
        }
        Ok(())
    }

    /// Says something to some nodes.
    async fn send(&self, to: &BTreeSet<NodeName>, message: &NodeMessage) -> Result<(), StoreFault>;

    /// Says something to all other nodes.
    async fn broadcast(&self, message: &NodeMessage) -> Result<(), StoreFault>;

    /// Says to all other nodes that something was not said: they hear [`Heard::Gap`].
    async fn say_gap(&self) -> Result<(), StoreFault>;

    /// Listens to the other nodes from now on.
    async fn subscribe(&self) -> mpsc::Receiver<Heard>;
}

/// Something that one process does for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Looking for waiting visitors and free agents (Z3).
    DrainSweep,
    /// Comparing live agents with leases, and requeueing after the grace (P4, Z7).
    Liveness,
    /// Publishing what its own node could not (N2).
    Relay,
    /// Comparing copies with rows (A1).
    Reconcile,
    /// Deleting uploads that nobody used (U1).
    UploadCleanup,
    /// Trimming confirmed events (N2).
    OutboxTrim,
    /// Bringing what was said into the index that searches ask.
    SearchIndex,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 7] = [
        Self::DrainSweep,
        Self::Liveness,
        Self::Relay,
        Self::Reconcile,
        Self::UploadCleanup,
        Self::OutboxTrim,
        Self::SearchIndex,
    ];

    /// The stable name, as stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DrainSweep => "drain_sweep",
            Self::Liveness => "liveness",
            Self::Relay => "relay",
            Self::Reconcile => "reconcile",
            Self::UploadCleanup => "upload_cleanup",
            Self::OutboxTrim => "outbox_trim",
            Self::SearchIndex => "search_index",
        }
    }
}

/// Leases of tasks that one process does for all. They keep processes out of each other's way;
/// every task is written so that two at once do no harm, since a frozen holder may wake at any time.
///
/// # Contract
/// - At most one live lease a task. `hold` takes a free or expired one, extends one's own, and gives
///   `None` while another holder's lives.
/// - The epoch grows whenever the holder changes.
/// - `release` frees one's own at once, and nobody else's.
/// - Time is the store's, not the caller's.
///
/// # Errors
/// [`StoreFault::Unavailable`]: the caller does not hold the task.
#[async_trait]
pub trait TaskLeases: Send + Sync {
    /// Takes or extends; the epoch of the lease while `holder` has it.
    async fn hold(
        &self,
        task: Task,
        holder: &NodeName,
        ttl: Duration,
    ) -> Result<Option<i64>, StoreFault>;

    /// Gives it up.
    async fn release(&self, task: Task, holder: &NodeName) -> Result<(), StoreFault>;
}
