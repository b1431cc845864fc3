//! The rule of a send, over a batch of many sessions: dedupe, rights, state, order (T1, T2, A3, S2).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kefu_core::snowflake::timestamp_of;
use kefu_core::{ClientMsgId, ConnId, IdSource, MsgId, Seq, SessionId, TraceId, UserId};
use kefu_events::{Envelope, Event, EventContext};
use kefu_session::{Refusal, Session};
use kefu_upload::UploadPath;

use crate::{Message, MessageStatus, MessageType, Sender};

/// Where a message should go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppendTarget {
    /// A named session.
    Session(SessionId),
    /// The user's open session, so that connect and first messages can be pipelined.
    OpenSessionOf(UserId),
}

/// What a message says. Text was checked where the frame was read (M1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Draft {
    /// 1 … 500 scalar values.
    Text(String),
    /// An image that was uploaded into the same session.
    Image(UploadPath),
}

impl Draft {
    /// The type to store.
    #[must_use]
    pub const fn msg_type(&self) -> MessageType {
        match self {
            Self::Text(_) => MessageType::Text,
            Self::Image(_) => MessageType::Image,
        }
    }

    /// The content to store.
    #[must_use]
    pub fn content(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image(path) => Cow::Owned(path.to_string()),
        }
    }
}

/// One send, admitted and validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRequest {
    /// Where it should go.
    pub target: AppendTarget,
    /// The verified sender: a user or an agent.
    pub sender: Sender,
    /// The sender's key (T2).
    pub client_msg_id: ClientMsgId,
    /// What it says.
    pub draft: Draft,
    /// The connection it came on: the sender's other devices are told, this one is answered.
    pub origin: Option<ConnId>,
    /// The frame it came in.
    pub trace_id: TraceId,
}

/// A message that was just stored, attached to its event for local handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fresh {
    /// The message.
    pub message: Arc<Message>,
    /// The connection it came on.
    pub origin: Option<ConnId>,
}

/// What the store knows about a batch, read after its sessions were locked.
#[derive(Debug, Clone, Default)]
pub struct AppendSnapshot {
    /// Every session that a target names, and every open session of a target's user.
    pub sessions: BTreeMap<SessionId, Session>,
    /// The open session of each user that a target names.
    pub open: BTreeMap<UserId, SessionId>,
    /// Every stored message whose sender and key some request carries, over all sessions.
    pub stored: Vec<Message>,
    /// The session of every upload that a draft names.
    pub uploads: BTreeMap<UploadPath, SessionId>,
}

/// A message as stored by this batch or before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The message.
    pub message: Arc<Message>,
    /// Whether an earlier send with the same key had stored it.
    pub duplicate: bool,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is stored.
    Stored(Stored),
    /// The rules refuse it.
    Refused(Refusal),
}

/// A session's new tip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// The session.
    pub session_id: SessionId,
    /// Its last position.
    pub last_seq: Seq,
    /// Its last message.
    pub last_msg_id: MsgId,
    /// Its version.
    pub version: i64,
}

/// What a batch writes, and the answer to each request, in the order of the requests.
#[derive(Debug, Clone, Default)]
pub struct AppendVerdict {
    /// One per request.
    pub outcomes: Vec<AppendOutcome>,
    /// New messages, in order.
    pub messages: Vec<Arc<Message>>,
    /// The tips of the sessions that got messages.
    pub tips: Vec<Tip>,
    /// New outbox rows, each with its message attached for local handlers.
    pub events: Vec<Envelope>,
}

/// Decides a batch. Requests of one session keep their order; duplicates inside the batch collapse
/// first (T2).
#[must_use]
pub fn decide_append(
    snapshot: &AppendSnapshot,
    requests: &[AppendRequest],
    context: &EventContext,
    ids: &dyn IdSource,
) -> AppendVerdict {
    let mut batch = Batch::new(snapshot, requests.len(), context, ids);
    let outcomes = requests.iter().map(|request| batch.decide(request)).collect();
    let tips = batch.sessions.values().filter_map(|session| batch.tip(session)).collect();
    AppendVerdict { outcomes, messages: batch.messages, tips, events: batch.events }
}

/// Under what a sender's repeat is found (T2).
type Key<'a> = (&'a Sender, &'a ClientMsgId);

struct Batch<'a> {
    snapshot: &'a AppendSnapshot,
    context: &'a EventContext,
    ids: &'a dyn IdSource,
    /// Messages of the batch's senders and keys: stored before it, and by it.
    stored: HashMap<Key<'a>, Vec<&'a Message>>,
    fresh: HashMap<Key<'a>, Vec<Arc<Message>>>,
    /// Sessions that got messages, as they will be.
    sessions: BTreeMap<SessionId, Session>,
    messages: Vec<Arc<Message>>,
    events: Vec<Envelope>,
}

impl<'a> Batch<'a> {
    fn new(
        snapshot: &'a AppendSnapshot,
        size: usize,
        context: &'a EventContext,
        ids: &'a dyn IdSource,
    ) -> Self {
        let mut stored: HashMap<_, Vec<_>> = HashMap::new();
        for message in &snapshot.stored {
            stored.entry((&message.sender, &message.client_msg_id)).or_default().push(message);
        }
        Self {
            snapshot,
            context,
            ids,
            stored,
            fresh: HashMap::with_capacity(size),
            sessions: BTreeMap::new(),
            messages: Vec::with_capacity(size),
            events: Vec::with_capacity(size),
        }
    }

    fn decide(&mut self, request: &'a AppendRequest) -> AppendOutcome {
        if let Some(earlier) = self.earlier(request) {
            return repeat(request, earlier);
        }
        match self.admit(request) {
            Ok(session) => AppendOutcome::Stored(self.append(&session, request)),
            Err(refusal) => AppendOutcome::Refused(refusal),
        }
    }

    /// The message that this sender stored under this key: in the named session, or in any of the
    /// sender's when none is named (T2).
    fn earlier(&self, request: &AppendRequest) -> Option<Arc<Message>> {
        let is_meant = |message: &Message| match &request.target {
            AppendTarget::Session(session) => message.session_id == *session,
            AppendTarget::OpenSessionOf(_) => true,
        };
        let key = (&request.sender, &request.client_msg_id);
        let mut fresh = self.fresh.get(&key).into_iter().flatten();
        if let Some(fresh) = fresh.find(|message| is_meant(message)) {
            return Some(Arc::clone(fresh));
        }
        // The newest wins should a key have been used in two sessions by name.
        let stored = self.stored.get(&key).into_iter().flatten();
        let newest = stored.filter(|m| is_meant(m)).max_by_key(|message| message.msg_id);
        newest.map(|message| Arc::new((*message).clone()))
    }

    /// The session as it stands in this batch, if the sender may write to it now (A3, S2).
    fn admit(&self, request: &AppendRequest) -> Result<Session, Refusal> {
        let id = match &request.target {
            AppendTarget::Session(id) => Some(id),
            AppendTarget::OpenSessionOf(user) => self.snapshot.open.get(user),
        };
        let session = id
            .and_then(|id| self.sessions.get(id).or_else(|| self.snapshot.sessions.get(id)))
            .ok_or(Refusal::NotFound)?;
        let is_party = match &request.sender {
            Sender::User(user) => session.user.user_id == *user,
            Sender::Agent(admin) => session.admin_id.as_ref() == Some(admin),
            Sender::System | Sender::Bot => true,
        };
        if !is_party {
            return Err(Refusal::NotFound);
        }
        if !session.is_open() {
            return Err(Refusal::SessionClosed);
        }
        if let Draft::Image(path) = &request.draft
            && self.snapshot.uploads.get(path) != Some(&session.id)
        {
            return Err(Refusal::BadRequest("content is not an image uploaded to this session"));
        }
        Ok(session.clone())
    }

    /// The one place that gives out `seq`, id and time (T1).
    fn append(&mut self, session: &Session, request: &'a AppendRequest) -> Stored {
        let floor = session.last_msg_id.map_or(session.id.get(), MsgId::get);
        let msg_id = MsgId::next_after(self.ids, floor);
        let session = session.appended(msg_id);
        let message = Arc::new(Message {
            msg_id,
            session_id: session.id,
            seq: session.last_seq,
            sender: request.sender.clone(),
            client_msg_id: request.client_msg_id.clone(),
            msg_type: request.draft.msg_type(),
            content: request.draft.content().into_owned(),
            status: MessageStatus::Pending,
            create_time: timestamp_of(msg_id.get()),
        });
        let event = Event::MessageStored {
            session_id: session.id,
            msg_id,
            seq: session.last_seq,
            user_id: session.user.user_id.clone(),
            admin_id: session.admin_id.clone(),
            version: session.version,
        };
        let context = EventContext { trace_id: request.trace_id.clone(), ..self.context.clone() };
        let fresh = Fresh { message: Arc::clone(&message), origin: request.origin };
        let envelope = Envelope::new(event, &context, self.ids);
        self.events.push(envelope.with_attachment(Arc::new(fresh)));
        let key = (&request.sender, &request.client_msg_id);
        self.fresh.entry(key).or_default().push(Arc::clone(&message));
        self.messages.push(Arc::clone(&message));
        self.sessions.insert(session.id, session);
        Stored { message, duplicate: false }
    }

    fn tip(&self, session: &Session) -> Option<Tip> {
        session.last_msg_id.map(|last_msg_id| Tip {
            session_id: session.id,
            last_seq: session.last_seq,
            last_msg_id,
            version: session.version,
        })
    }
}

/// The same content again gets the original answer; other content under the same key is a conflict.
fn repeat(request: &AppendRequest, earlier: Arc<Message>) -> AppendOutcome {
    let same =
        earlier.msg_type == request.draft.msg_type() && earlier.content == request.draft.content();
    if same {
        AppendOutcome::Stored(Stored { message: earlier, duplicate: true })
    } else {
        AppendOutcome::Refused(Refusal::Conflict)
    }
}
