//! The rule of an acknowledgement (M3): by a receiver, monotonic, idempotent in any order.

use std::collections::{BTreeMap, HashMap};

use kefu_core::{Caller, ConnId, MsgId, Seq, SessionId, TraceId};
use kefu_session::{Access, Refusal, Session, access, role_allows};

use crate::{Message, MessageStatus, Side};

/// What is reported about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// A device of the receiver has it.
    Delivered,
    /// The receiver saw it.
    Read,
    /// Its pushes went unanswered; only kefu itself reports this.
    Failed,
}

impl Receipt {
    /// The status it leads to.
    #[must_use]
    pub const fn status(self) -> MessageStatus {
        match self {
            Self::Delivered => MessageStatus::Delivered,
            Self::Read => MessageStatus::Read,
            Self::Failed => MessageStatus::Failed,
        }
    }
}

/// Who reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    /// A receiver.
    By(Caller),
    /// The delivery loop.
    BySystem,
}

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRequest {
    /// Who reports.
    pub by: Reported,
    /// About which message.
    pub msg_id: MsgId,
    /// What.
    pub receipt: Receipt,
    /// Also about every earlier message of the other side in that session.
    pub cumulative: bool,
    /// The connection that reports: its person's other devices are told.
    pub origin: Option<ConnId>,
    /// The frame that brought it, if one did.
    pub trace_id: Option<TraceId>,
}

impl ReceiptRequest {
    /// Whether the report also covers an earlier message in this status: only one that it can still
    /// raise, so that a report costs what it changes, not what the session holds.
    #[must_use]
    pub const fn covers_earlier(&self, status: MessageStatus) -> bool {
        self.cumulative && status.may_become(self.receipt.status())
    }
}

/// What the store knows about a batch of reports.
#[derive(Debug, Clone, Default)]
pub struct ReceiptSnapshot {
    /// The named messages; for each report also the earlier ones of the same session and sender side
    /// that it covers ([`ReceiptRequest::covers_earlier`]). By id.
    pub messages: BTreeMap<MsgId, Message>,
    /// Their sessions.
    pub sessions: BTreeMap<SessionId, Session>,
}

/// One status that changes, and whom to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusChange {
    /// The message as it was, with its new status.
    pub message: Message,
    /// The session as it stands: its user and owner tell who is on the sender's side now (M2).
    pub session: Session,
    /// The frame that reported it, if one did.
    pub trace_id: Option<TraceId>,
}

/// The answer to one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptOutcome {
    /// Taken; it may have changed nothing.
    Taken,
    /// The reporter may not.
    Refused(Refusal),
}

/// What a batch of reports writes: the highest status reached, once per message.
#[derive(Debug, Clone, Default)]
pub struct ReceiptVerdict {
    /// One per request.
    pub outcomes: Vec<ReceiptOutcome>,
    /// By message id, so by `seq` within a session.
    pub changes: Vec<StatusChange>,
}

/// Decides a batch of reports.
#[must_use]
pub fn decide_receipts(snapshot: &ReceiptSnapshot, requests: &[ReceiptRequest]) -> ReceiptVerdict {
    let mut changed = BTreeMap::new();
    let sides = Sides::of(snapshot);
    let outcomes = requests
        .iter()
        .map(|request| match admit(snapshot, request) {
            Ok(named) => {
                sides.raise(named, request, &mut changed);
                ReceiptOutcome::Taken
            }
            Err(refusal) => ReceiptOutcome::Refused(refusal),
        })
        .collect();
    let changes =
        changed.into_iter().filter_map(|(id, raised)| change(snapshot, id, raised)).collect();
    ReceiptVerdict { outcomes, changes }
}

fn admit<'a>(
    snapshot: &'a ReceiptSnapshot,
    request: &ReceiptRequest,
) -> Result<&'a Message, Refusal> {
    let message = snapshot.messages.get(&request.msg_id).ok_or(Refusal::NotFound);
    let Reported::By(caller) = &request.by else { return message };
    role_allows(caller, Access::Talk)?;
    if request.receipt == Receipt::Failed {
        return Err(Refusal::BadRequest("a receiver cannot report a failure"));
    }
    let message = message?;
    let session = snapshot.sessions.get(&message.session_id).ok_or(Refusal::NotFound)?;
    access(session, caller, Access::Talk, false)?;
    let reader = if caller.user_id().is_some() { Side::User } else { Side::Agent };
    // One's own message, or a colleague's: the caller sees it but is not its receiver.
    if message.sender.side() == reader { Err(Refusal::Forbidden) } else { Ok(message) }
}

/// A status that was reached, and by which report.
type Raised<'a> = (MessageStatus, &'a ReceiptRequest);

/// The messages of each side of each session, so that a report looks only at those it may cover.
struct Sides<'a>(HashMap<(SessionId, Side), BTreeMap<Seq, &'a Message>>);

impl<'a> Sides<'a> {
    fn of(snapshot: &'a ReceiptSnapshot) -> Self {
        let mut sides: HashMap<_, BTreeMap<_, _>> = HashMap::new();
        for message in snapshot.messages.values() {
            let side = (message.session_id, message.sender.side());
            sides.entry(side).or_default().insert(message.seq, message);
        }
        Self(sides)
    }

    fn raise<'r>(
        &self,
        named: &Message,
        request: &'r ReceiptRequest,
        changed: &mut BTreeMap<MsgId, Raised<'r>>,
    ) {
        let next = request.receipt.status();
        let side = self.0.get(&(named.session_id, named.sender.side()));
        let earlier = side.filter(|_| request.cumulative).into_iter();
        let earlier = earlier.flat_map(|side| side.range(..named.seq).map(|(_, message)| *message));
        for message in earlier.chain([named]) {
            let present =
                changed.get(&message.msg_id).map_or(message.status, |(raised, _)| *raised);
            if present.may_become(next) {
                changed.insert(message.msg_id, (next, request));
            }
        }
    }
}

fn change(
    snapshot: &ReceiptSnapshot,
    id: MsgId,
    (status, report): Raised<'_>,
) -> Option<StatusChange> {
    let message = snapshot.messages.get(&id)?;
    let session = snapshot.sessions.get(&message.session_id)?.clone();
    let message = Message { status, ..message.clone() };
    Some(StatusChange { message, session, trace_id: report.trace_id.clone() })
}
