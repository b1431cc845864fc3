//! The event envelope and every kind of event.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use kefu_core::{
    Actor, AdminId, EventId, IdSource, MsgId, NodeName, NoteId, Seq, SessionId, Timestamp, TraceId,
    UserId,
};
use serde::{Deserialize, Serialize};

/// The newest version among the event shapes below. Readers skip versions they do not know, with a metric (N1).
pub const SCHEMA_VERSION: u16 = 2;

/// How a session came to its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// By the drain pass.
    Drain,
    /// An agent took it from the line.
    Claim,
    /// A colleague or supervisor handed it over.
    Transfer,
}

/// Why a session went back to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequeueReason {
    /// The agent was gone longer than the grace (Z7).
    AgentGone,
    /// The agent went offline and asked for it.
    AgentOffline,
}

impl RequeueReason {
    /// The wire text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentGone => "agent_gone",
            Self::AgentOffline => "agent_offline",
        }
    }
}

/// What happened. Carries ids, order and owners; never texts or names.
///
/// `version` is the session's version after the change, so that a reader can tell older from newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are the ids their names say")]
pub enum Event {
    /// A user began to wait.
    SessionOpened { session_id: SessionId, user_id: UserId, version: i64 },
    /// A session has an owner now.
    SessionAssigned {
        session_id: SessionId,
        user_id: UserId,
        admin_id: AdminId,
        from: Option<AdminId>,
        how: How,
        actor: Actor,
        version: i64,
    },
    /// A session waits again.
    SessionRequeued {
        session_id: SessionId,
        user_id: UserId,
        from: AdminId,
        reason: RequeueReason,
        version: i64,
    },
    /// A session is over.
    SessionEnded {
        session_id: SessionId,
        user_id: UserId,
        admin_id: Option<AdminId>,
        ended_by: Actor,
        version: i64,
    },
    /// Its user rated a session.
    SessionRated { session_id: SessionId, user_id: UserId, rating: u8, version: i64 },
    /// A message was stored. `admin_id` owned the session in that transaction.
    MessageStored {
        session_id: SessionId,
        msg_id: MsgId,
        seq: Seq,
        user_id: UserId,
        admin_id: Option<AdminId>,
        version: i64,
    },
    /// An agent's availability, cap or liveness changed.
    AgentChanged { admin_id: AdminId, online: bool, live: bool },
    /// An agent or a supervisor wrote a private note. Of no interest to any user (B95).
    NoteAdded { session_id: SessionId, note_id: NoteId, admin_id: AdminId },
}

impl Event {
    /// The stable name of the kind, as stored in `cg_chat_outbox.event_type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SessionOpened { .. } => "session_opened",
            Self::SessionAssigned { .. } => "session_assigned",
            Self::SessionRequeued { .. } => "session_requeued",
            Self::SessionEnded { .. } => "session_ended",
            Self::SessionRated { .. } => "session_rated",
            Self::MessageStored { .. } => "message_stored",
            Self::AgentChanged { .. } => "agent_changed",
            Self::NoteAdded { .. } => "note_added",
        }
    }

    /// The version in which the kind first had its present shape: what an older reader skips.
    #[must_use]
    pub const fn schema_version(&self) -> u16 {
        match self {
            Self::SessionOpened { .. }
            | Self::SessionAssigned { .. }
            | Self::SessionRequeued { .. }
            | Self::SessionEnded { .. }
            | Self::SessionRated { .. }
            | Self::MessageStored { .. }
            | Self::AgentChanged { .. } => 1,
            Self::NoteAdded { .. } => 2,
        }
    }

    /// Events with the same key are handled in commit order: `session:<id>` or `agent:<id>`.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::SessionOpened { session_id, .. }
            | Self::SessionAssigned { session_id, .. }
            | Self::SessionRequeued { session_id, .. }
            | Self::SessionEnded { session_id, .. }
            | Self::SessionRated { session_id, .. }
            | Self::MessageStored { session_id, .. }
            | Self::NoteAdded { session_id, .. } => format!("session:{session_id}"),
            Self::AgentChanged { admin_id, .. } => format!("agent:{admin_id}"),
        }
    }
}

/// Where and when a decision is made: what every envelope of it shares.
#[derive(Debug, Clone)]
pub struct EventContext {
    /// Wall time of the decision.
    pub now: Timestamp,
    /// The node that decides.
    pub source: NodeName,
    /// The frame or task that caused it.
    pub trace_id: TraceId,
}

/// Something the committing task already holds, so that a local handler need not read it back.
type Attachment = Arc<dyn Any + Send + Sync>;

/// One event with its id, time and origin: a row of `cg_chat_outbox`.
#[derive(Clone)]
pub struct Envelope {
    /// Unique; consumers dedupe by it.
    pub id: EventId,
    /// Version of the shape of `event`.
    pub schema_version: u16,
    /// When it was decided.
    pub time: Timestamp,
    /// The node that decided.
    pub source: NodeName,
    /// Ties it to the frame that caused it.
    pub trace_id: TraceId,
    /// What happened.
    pub event: Event,
    attachment: Option<Attachment>,
}

impl Envelope {
    /// Around whatever is done because of it, on every node: log lines find the frame that caused it.
    #[must_use]
    pub fn span(&self) -> tracing::Span {
        tracing::info_span!("event", trace_id = %self.trace_id, event_id = %self.id, source = %self.source)
    }

    /// Wraps `event`, with a fresh id.
    #[must_use]
    pub fn new(event: Event, context: &EventContext, ids: &dyn IdSource) -> Self {
        let id = EventId::next_after(ids, 0);
        Self::stored(id, event.schema_version(), context, event)
    }

    /// Rebuilds an envelope from its outbox row.
    #[must_use]
    pub fn stored(id: EventId, schema_version: u16, context: &EventContext, event: Event) -> Self {
        Self {
            id,
            schema_version,
            time: context.now,
            source: context.source.clone(),
            trace_id: context.trace_id.clone(),
            event,
            attachment: None,
        }
    }

    /// Attaches what local handlers would otherwise read back. Never serialised.
    #[must_use]
    pub fn with_attachment<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.attachment = Some(value);
        self
    }

    /// The attachment, if it is a `T`.
    #[must_use]
    pub fn attachment<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.attachment.clone().and_then(|any| any.downcast().ok())
    }
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Envelope")
            .field("id", &self.id)
            .field("event", &self.event)
            .field("trace_id", &self.trace_id)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Envelope {
    /// Compares what is stored; attachments do not count.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.schema_version == other.schema_version
            && self.time == other.time
            && self.source == other.source
            && self.trace_id == other.trace_id
            && self.event == other.event
    }
}

impl Eq for Envelope {}
