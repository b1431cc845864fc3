//! What the server sends.

pub(crate) mod agent;
pub(crate) mod connected;
pub(crate) mod error;
pub(crate) mod message;
pub(crate) mod session;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canned::{CannedList, CannedRef, CannedStored};
use crate::client::SessionRef;
use crate::frames::frames;
use crate::note::{NoteList, NoteObject};
use crate::page::PageShown;
use crate::sessions::SessionsList;
use crate::supervisor::{BoardFrame, Explanation, SessionWatch};
use crate::vocabulary::Typing;
use agent::{AgentList, AgentStatus, QueueList, SessionNew, SessionRemoved};
use connected::Connected;
use error::ErrorFrame;
use message::{History, MessageObject, PeerAck, ServerAck};
use session::{
    OfflineNotice, Pong, QueuePosition, SessionAssigned, SessionEnded, SessionRated, SessionRead,
    SessionRequeued, SessionTransferred,
};

frames! {
    /// A frame from the server.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub enum ServerFrame {
        /// The answer to `chat.connect`.
        "chat.connected" => Connected(Connected),
        /// A message, pushed to the receiver's devices and to the sender's other ones (M2).
        "chat.message.new" => MessageNew(MessageObject),
        /// The message is stored (A2). The answer to `chat.message.send`.
        "chat.message.server_ack" => ServerAck(ServerAck),
        /// A message's status changed; to the sender's side.
        "chat.message.peer_ack" => PeerAck(PeerAck),
        /// The other side types, or stopped.
        "chat.typing" => Typing(Typing),
        /// An agent serves the session now; to its user.
        "chat.session.assigned" => SessionAssigned(SessionAssigned),
        /// The session is over.
        "chat.session.ended" => SessionEnded(SessionEnded),
        /// The session waits again; to its user.
        "chat.session.requeued" => SessionRequeued(SessionRequeued),
        /// No agent is online; to a waiting user.
        "chat.offline_notice" => OfflineNotice(OfflineNotice),
        /// The answer to `chat.ping`.
        "chat.pong" => Pong(Pong),
        /// A session for this agent. Also the answer to `chat.session.claim`.
        "chat.session.new" => SessionNew(SessionNew),
        /// The waiting line; to agents, when it changed and when asked for.
        "chat.queue.list" => QueueList(QueueList),
        /// The session left this agent without having ended.
        "chat.session.removed" => SessionRemoved(SessionRemoved),
        /// The place in line changed; to a waiting user.
        "chat.queue.position" => QueuePosition(QueuePosition),
        /// A frame was refused.
        "chat.error" => Error(ErrorFrame),
        /// The agent's availability. The answer to `chat.agent.online` and `chat.agent.offline`.
        "chat.agent.status" => AgentStatus(AgentStatus),
        /// The answer to `chat.history`.
        "chat.history" => History(History),
        /// A rating as it is stored. The answer to `chat.session.rate`, and a push to the agent who served last (S3).
        "chat.session.rated" => SessionRated(SessionRated),
        /// The answer to `chat.session.transfer`.
        "chat.session.transferred" => SessionTransferred(SessionTransferred),
        /// The answer to `chat.agent.list`.
        "chat.agent.list" => AgentList(AgentList),
        /// This person's other devices have read a session up to here (B64).
        "chat.session.read" => SessionRead(SessionRead),
        /// The answer to `chat.session.watch`.
        "chat.session.watch" => SessionWatch(SessionWatch),
        /// The answer to `chat.session.unwatch`.
        "chat.session.unwatch" => SessionUnwatch(SessionRef),
        /// The board. The answer to `chat.board`, and a push.
        "chat.board" => Board(BoardFrame),
        /// The answer to `chat.assignment.explain`.
        "chat.assignment.explain" => Explanation(Explanation),
        /// The page that a session's user looks at; to its agent.
        "chat.page" => Page(PageShown),
        /// The answer to `chat.sessions.list`.
        "chat.sessions.list" => SessionsList(SessionsList),
        /// A private note. The answer to `chat.note.add`, and a push; never to a user (B95).
        "chat.note.new" => NoteNew(NoteObject),
        /// The answer to `chat.note.list`.
        "chat.note.list" => NoteList(NoteList),
        /// The answer to `chat.canned.list`.
        "chat.canned.list" => CannedList(CannedList),
        /// The answer to `chat.canned.put`.
        "chat.canned.put" => CannedPut(CannedStored),
        /// The answer to `chat.canned.delete`.
        "chat.canned.delete" => CannedDelete(CannedRef),
    }
}
