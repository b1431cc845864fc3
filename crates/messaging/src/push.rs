//! What is pushed to people, and the port that does it.

use std::sync::Arc;

use async_trait::async_trait;
use kefu_console::{BoardFigures, Note, PageView};
use kefu_core::{
    Actor, AdminId, AgentInfo, ConnId, MsgId, Person, Seq, SessionId, Timestamp, UserInfo,
};
use kefu_session::{Rating, Session};

use crate::{Message, MessageStatus, Parties, Side};

/// A session offered to its new agent (`chat.session.new`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOffer {
    /// The session.
    pub session_id: SessionId,
    /// Its user.
    pub user: UserInfo,
    /// Where the user came from.
    pub source: String,
    /// The user's messages not yet read.
    pub unread: u32,
    /// The last position, to pull history from.
    pub last_seq: Seq,
    /// A colleague's word on a transfer.
    pub note: Option<String>,
}

/// One line of the waiting list that consoles show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEntry {
    /// The session.
    pub session_id: SessionId,
    /// Its user.
    pub user: UserInfo,
    /// Since when.
    pub waiting_since: Timestamp,
    /// 1 is next.
    pub position: u32,
}

/// Why a session leaves an agent's console without having ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalReason {
    /// It is with this colleague now.
    Transferred(AdminId),
    /// It waits again.
    Requeued,
}

/// Everything that is pushed without having been asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// `chat.message.new`, the `attempt`-th push of it, counted from 1.
    Message {
        /// The message.
        message: Arc<Message>,
        /// 1 for the first push.
        attempt: u32,
        /// Whether it goes to the sender's own other devices, which may see its key.
        own: bool,
    },
    /// `chat.message.peer_ack`.
    PeerAck {
        /// The session.
        session_id: SessionId,
        /// The message.
        msg_id: MsgId,
        /// Its position.
        seq: Seq,
        /// Its status now.
        status: MessageStatus,
        /// The side of its sender, who is told.
        side: Side,
    },
    /// `chat.typing`.
    Typing {
        /// The session.
        session_id: SessionId,
        /// Whether the other side types.
        is_typing: bool,
    },
    /// `chat.session.assigned`.
    Assigned {
        /// The session.
        session_id: SessionId,
        /// Who serves it now.
        agent: AgentInfo,
    },
    /// `chat.session.ended`.
    Ended {
        /// The session.
        session_id: SessionId,
        /// Who ended it.
        ended_by: Option<Actor>,
        /// When.
        time: Timestamp,
    },
    /// `chat.session.rated`, to who served it last.
    Rated {
        /// The session.
        session_id: SessionId,
        /// As stored.
        rating: Rating,
    },
    /// `chat.session.requeued`.
    Requeued {
        /// The session.
        session_id: SessionId,
        /// Why, as wire text.
        reason: &'static str,
    },
    /// `chat.offline_notice`, in the connection's language.
    OfflineNotice,
    /// `chat.queue.position`.
    QueuePosition {
        /// The session.
        session_id: SessionId,
        /// 1 is next.
        position: u32,
        /// How many wait.
        total: u32,
    },
    /// `chat.session.new`.
    SessionNew(SessionOffer),
    /// `chat.session.removed`.
    SessionRemoved {
        /// The session.
        session_id: SessionId,
        /// Why.
        reason: RemovalReason,
    },
    /// `chat.queue.list`.
    QueueList {
        /// The first 50.
        entries: Arc<[QueueEntry]>,
        /// How many wait.
        total: u32,
        /// Grows, so that an older list is noticed.
        version: i64,
    },
    /// `chat.agent.status`.
    AgentStatus {
        /// Whether the agent takes new sessions.
        online: bool,
        /// The cap.
        max_sessions: u32,
        /// The load.
        active_sessions: u32,
    },
    /// `chat.typing` as a watching supervisor sees it.
    WatchedTyping {
        /// The session.
        session_id: SessionId,
        /// Whether somebody types.
        is_typing: bool,
        /// Which side.
        by: Side,
    },
    /// `chat.session.read`: to the reader's other devices.
    Read {
        /// The session.
        session_id: SessionId,
        /// The other side's messages are read up to here.
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
    /// `chat.board`.
    Board(Arc<BoardFigures>),
    /// `chat.note.new`: only ever to agents and supervisors (B95).
    Note {
        /// The note.
        note: Arc<Note>,
        /// Whether it goes to the author's own other devices, which may see its key.
        own: bool,
    },
}

/// How far a push got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// Connections whose queue took it.
    pub connections: usize,
}

/// Brings pushes to all connections of a person, wherever they are.
///
/// # Contract
/// - Never waits for a slow connection: its queue is bounded, and a full one is closed (L1).
/// - Pushes to one person keep their order on each connection (M6).
/// - `except` is left out: the connection whose own act this is.
/// - Having been taken says nothing about having arrived; only a receipt does (M3).
/// - `push_to_side` goes by a row that was read a moment ago. Whoever knows of changes since then pushes
///   to who holds the side now: an agent who was told that the session is gone gets nothing more (A3).
#[async_trait]
pub trait Pusher: Send + Sync {
    /// Pushes to one person.
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach;

    /// Pushes to every agent and supervisor connected.
    async fn push_to_consoles(&self, push: &Push);

    /// Pushes to whoever holds `side` of the session, if anybody does. As it is here, it trusts the row.
    async fn push_to_side(
        &self,
        session: &Session,
        side: Side,
        push: &Push,
        except: Option<ConnId>,
    ) -> Reach {
        match Parties::from(session).on(side) {
            Some(to) => self.push(&to, push, except).await,
            None => Reach::default(),
        }
    }
}
