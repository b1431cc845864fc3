//! Delivery: every stored message to all devices of the receiver and to the sender's other devices
//! (M2), again until acknowledged (M3).

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kefu_core::{AdminId, MsgId, Person, SessionId, StoreFault, UserId};
use kefu_session::{Session, SessionStore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::retry::{Due, RetryClock, RetryHandle};
use crate::{
    BatchConfig, Fresh, Message, MessageStore, Push, Pusher, Receipt, ReceiptRequest, Receipts,
    Reported, RetrySchedule, Sender, Side,
};

/// Who holds the two sides of a session now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parties {
    /// The session.
    pub session_id: SessionId,
    /// Its user.
    pub user: UserId,
    /// Its owner.
    pub owner: Option<AdminId>,
}

impl Parties {
    /// The person on `side`, if anybody is there.
    #[must_use]
    pub fn on(&self, side: Side) -> Option<Person> {
        match side {
            Side::User => Some(Person::User(self.user.clone())),
            Side::Agent => self.owner.clone().map(Person::Agent),
        }
    }
}

impl From<&Session> for Parties {
    fn from(session: &Session) -> Self {
        // An ended session's recorded agent holds nothing any more (A3).
        let owner = session.admin_id.clone().filter(|_| session.is_open());
        Self { session_id: session.id, user: session.user.user_id.clone(), owner }
    }
}

/// Pushes messages and watches for their acknowledgement.
#[derive(Clone)]
pub struct Delivery {
    pusher: Arc<dyn Pusher>,
    retries: RetryHandle,
    schedule: RetrySchedule,
}

impl Delivery {
    /// Starts the retry loop and the receipt writer on `tracker`.
    #[must_use]
    pub fn start(
        messages: Arc<dyn MessageStore>,
        sessions: Arc<dyn SessionStore>,
        pusher: Arc<dyn Pusher>,
        schedule: RetrySchedule,
        receipts: BatchConfig,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> (Self, Arc<Receipts>) {
        let (retries, clock) = RetryHandle::channel();
        let receipts = Arc::new(Receipts::start(
            Arc::clone(&messages),
            Arc::clone(&pusher),
            retries.clone(),
            receipts,
            tracker,
            stop,
        ));
        let delivery = Self { pusher, retries, schedule };
        let retrier = Retrier {
            delivery: delivery.clone(),
            messages,
            sessions,
            receipts: Arc::clone(&receipts),
        };
        tracker.spawn(retrier.run(clock, stop.clone()));
        (delivery, receipts)
    }

    /// The first push of a message that was just stored.
    pub async fn deliver(&self, fresh: &Fresh, parties: &Parties) {
        self.echo(fresh, parties).await;
        self.push_to_receiver(&fresh.message, parties, 1).await;
    }

    /// The first push of a message that waited for its receiver.
    pub async fn redeliver(&self, message: Message, parties: &Parties) {
        self.push_to_receiver(&Arc::new(message), parties, 1).await;
    }

    /// A connect answer carried this message: it counts as its first push (M4).
    pub fn handed_over(&self, msg_id: MsgId) {
        self.track(msg_id, 1);
    }

    /// Tells the sender's other devices (M2): all of the first push that is left to do for a message
    /// which came to its receiver another way.
    pub async fn echo(&self, fresh: &Fresh, parties: &Parties) {
        let sender = match &fresh.message.sender {
            Sender::User(user) => Some(Person::User(user.clone())),
            // A former owner gets nothing more, not even an echo (A3).
            Sender::Agent(admin) => parties
                .owner
                .as_ref()
                .filter(|owner| *owner == admin)
                .map(|owner| Person::Agent(owner.clone())),
            Sender::System | Sender::Bot => parties.on(Side::Agent),
        };
        if let Some(sender) = sender {
            let message = Arc::clone(&fresh.message);
            let push = Push::Message { message, attempt: 1, own: true };
            self.pusher.push(&sender, &push, fresh.origin).await;
        }
    }

    /// Without any connection there is no attempt and no timer: the message stays `pending` (M3).
    async fn push_to_receiver(&self, message: &Arc<Message>, parties: &Parties, attempt: u32) {
        let Some(receiver) = parties.on(message.sender.side().other()) else { return };
        let push = Push::Message { message: Arc::clone(message), attempt, own: false };
        if self.pusher.push(&receiver, &push, None).await.connections > 0 {
            self.track(message.msg_id, attempt);
        }
    }

    /// A repeated push, to who holds the receiver's side by then (M2, A3).
    async fn push_again(&self, message: Arc<Message>, session: &Session, attempt: u32) {
        let (msg_id, side) = (message.msg_id, message.sender.side().other());
        let push = Push::Message { message, attempt, own: false };
        if self.pusher.push_to_side(session, side, &push, None).await.connections > 0 {
            self.track(msg_id, attempt);
        }
    }

    fn track(&self, msg_id: MsgId, attempt: u32) {
        self.retries.track(Due { msg_id, attempt }, self.schedule.after_push(attempt));
    }
}

/// Failures being recorded at once: they share commits, and take no more memory than this.
const FAILING: usize = 256;

/// What a message that came due needs.
enum Next {
    /// Nothing: it was pushed again, or needs no push any more.
    Nothing,
    /// Its last push went unanswered.
    Fail,
}

/// Pushes again what was not acknowledged.
struct Retrier {
    delivery: Delivery,
    messages: Arc<dyn MessageStore>,
    sessions: Arc<dyn SessionStore>,
    receipts: Arc<Receipts>,
}

impl Retrier {
    async fn run(self, mut clock: RetryClock, stop: CancellationToken) {
        let mut failing = FuturesUnordered::new();
        loop {
            let due = tokio::select! {
                () = stop.cancelled() => return,
                Some(reported) = failing.next(), if !failing.is_empty() => {
                    self.held_up(reported);
                    continue;
                }
                due = clock.next(), if failing.len() < FAILING => due,
            };
            let Some(due) = due else { return };
            match self.retry(due).await {
                Ok(Next::Nothing) => {}
                // Not awaited here: one commit each would make the others late.
                Ok(Next::Fail) => failing.push(self.fail(due)),
                Err(fault) => self.held_up(Err((due, fault))),
            }
        }
    }

    /// While the store is away a message keeps its place in the schedule; one that it cannot read would
    /// come back for ever.
    fn held_up(&self, outcome: Result<(), (Due, StoreFault)>) {
        let Err((due, fault)) = outcome else { return };
        match fault {
            StoreFault::Unavailable { .. } | StoreFault::Indeterminate { .. } => {
                tracing::warn!(msg_id = %due.msg_id, %fault, "push retry is held up");
                self.delivery.track(due.msg_id, due.attempt);
            }
            StoreFault::Internal { .. } => {
                tracing::error!(msg_id = %due.msg_id, %fault, "push retry is given up");
            }
        }
    }

    /// Reads the committed status first: what was delivered is never pushed again (2.5).
    async fn retry(&self, due: Due) -> Result<Next, StoreFault> {
        let message = self.messages.find(due.msg_id).await?;
        let Some(message) = message.filter(|message| !message.status.is_delivered()) else {
            return Ok(Next::Nothing);
        };
        if self.delivery.schedule.is_last(due.attempt) {
            return Ok(Next::Fail);
        }
        let Some(session) = self.sessions.find(message.session_id).await? else {
            return Ok(Next::Nothing);
        };
        self.delivery.push_again(Arc::new(message), &session, due.attempt + 1).await;
        Ok(Next::Nothing)
    }

    async fn fail(&self, due: Due) -> Result<(), (Due, StoreFault)> {
        let request = ReceiptRequest {
            by: Reported::BySystem,
            msg_id: due.msg_id,
            receipt: Receipt::Failed,
            cumulative: false,
            origin: None,
            trace_id: None,
        };
        match self.receipts.report(request).await {
            Err(crate::MessagingError::Submit(crate::SubmitError::Store(fault))) => {
                Err((due, fault))
            }
            // Refused: the message is gone. Overloaded or stopped: it stays `pending`.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
