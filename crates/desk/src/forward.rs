//! From this node to the others: committed events to where the people concerned are (N1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{ConnId, NodeName, Person, SessionId, StoreFault, TraceId};
use kefu_events::{Envelope, Event, Handler, HandlerError, Recent, current_trace, traces};
use kefu_messaging::{Fresh, Push, Pusher, Reach, Side};
use kefu_presence::PresenceStore;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::watch::Watchers;
use crate::{Audience, Connections, NodeBus, NodeMessage, Relayed};

/// Between two tries while the other nodes cannot be reached.
const AGAIN: Duration = Duration::from_secs(1);
/// Room for pushes on their way to other nodes; beyond it they are lost, as on a wire that is cut.
const QUEUE: usize = 8_192;
/// Pushes whose receivers are looked up at once.
const TOGETHER: usize = 64;

/// Says to other nodes what their people have to hear. Nobody hears it twice from here: what comes from
/// another node is never said again (N3).
#[derive(Clone)]
pub(crate) struct Forward {
    node: NodeName,
    presence: Arc<dyn PresenceStore>,
    nodes: Arc<dyn NodeBus>,
    unsaid: Arc<Unsaid>,
    watchers: Arc<Watchers>,
    /// Sessions whose first answer the boards of other nodes were told of.
    answered: Arc<Mutex<Recent<SessionId>>>,
}

/// What could not be said: the last change, and whether a push was lost. The others hear of the loss
/// with this node's next word, and read again what they missed (N4); so one must follow even if nothing
/// more happens here.
#[derive(Default)]
struct Unsaid {
    last: Mutex<Option<Envelope>>,
    push: AtomicBool,
    wake: Notify,
}

impl Unsaid {
    fn note(&self, envelope: &Envelope) {
        *self.last() = Some(envelope.clone());
        self.wake.notify_one();
    }

    /// A push is no fact of its own: that one was lost is all there is to say.
    fn note_push(&self) {
        metrics::counter!("kefu_forward_lost_total").increment(1);
        self.push.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    fn take(&self) -> Option<Envelope> {
        self.last().take()
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<Envelope>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Forward {
    pub(crate) const NAME: &'static str = "forward";

    pub(crate) fn new(
        node: NodeName,
        presence: Arc<dyn PresenceStore>,
        nodes: Arc<dyn NodeBus>,
        watchers: Arc<Watchers>,
    ) -> Self {
        let (unsaid, answered) = Default::default();
        Self { node, presence, nodes, unsaid, watchers, answered }
    }

    /// Says the last change again that could not be said, and that pushes were lost, until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.unsaid.wake.notified() => {}
            }
            // A back-off: nothing announces that the others can be reached again.
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(AGAIN) => {}
            }
            if self.unsaid.push.swap(false, Ordering::AcqRel)
                && let Err(fault) = self.nodes.say_gap().await
            {
                tracing::debug!(%fault, "other nodes do not know yet what they missed");
                self.unsaid.note_push();
            }
            let Some(envelope) = self.unsaid.take() else { continue };
            // Who heard it before does not tell it again (N2).
            if let Err(fault) = self.say(&envelope).await {
                tracing::debug!(%fault, "still not said to other nodes");
                self.unsaid.note(&envelope);
            }
        }
    }

    /// Says one event to the nodes that it concerns.
    pub(crate) async fn say(&self, envelope: &Envelope) -> Result<(), StoreFault> {
        self.say_together(&[envelope]).await
    }

    /// Says several events, in order, with one question where the people are and one answer to all.
    async fn say_together(&self, envelopes: &[&Envelope]) -> Result<(), StoreFault> {
        let people = envelopes.iter().flat_map(|envelope| addressees(&envelope.event)).collect();
        let of_each = self.nodes_of(people).await?;
        let mut words = Vec::with_capacity(envelopes.len());
        for envelope in envelopes {
            let addressees = addressees(&envelope.event);
            let theirs = addressees.iter().filter_map(|person| of_each.get(person));
            let mut nodes: BTreeSet<NodeName> = theirs.flatten().cloned().collect();
            nodes.extend(self.onlookers(envelope));
            nodes.remove(&self.node);
            if let Some(audience) = audience(&envelope.event, nodes) {
                let fresh = envelope.attachment::<Fresh>();
                let message = fresh.map(|fresh| Arc::clone(&fresh.message));
                words.push((
                    audience,
                    NodeMessage::Event { envelope: (*envelope).clone(), message },
                ));
            }
        }
        self.say_words(&words).await
    }

    /// Where each of them is connected, asked once for all of them.
    async fn nodes_of(
        &self,
        people: BTreeSet<Person>,
    ) -> Result<BTreeMap<Person, BTreeSet<NodeName>>, StoreFault> {
        if people.is_empty() {
            return Ok(BTreeMap::new());
        }
        let people: Vec<_> = people.into_iter().collect();
        let of_each = self.presence.list_nodes(&people).await?;
        Ok(people.into_iter().zip(of_each).collect())
    }

    async fn say_words(&self, words: &[(Audience, NodeMessage)]) -> Result<(), StoreFault> {
        if words.is_empty() {
            return Ok(());
        }
        self.nodes.say(words).await?;
        for (_, word) in words {
            metrics::counter!("kefu_node_bus_said_total", "kind" => word.kind()).increment(1);
        }
        Ok(())
    }

    /// Nodes that hear of a message although nobody there takes part in its session: where it is watched, and for
    /// the first answer in a session where somebody looks at the board.
    fn onlookers(&self, envelope: &Envelope) -> Vec<NodeName> {
        let Event::MessageStored { session_id, .. } = envelope.event else { return Vec::new() };
        let mut nodes = self.watchers.nodes_of(session_id);
        let boards = self.watchers.nodes_with_board();
        let is_answer = || {
            let fresh = envelope.attachment::<Fresh>();
            fresh.is_some_and(|fresh| fresh.message.sender.side() == Side::Agent)
        };
        if !boards.is_empty() && is_answer() {
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            if !answered.contains(session_id) {
                answered.insert(session_id);
                nodes.extend(boards);
            }
        }
        nodes
    }

    /// Without the bus a message counts as said, and is found by its session's position (M5, N5); a
    /// change is read again by the others (N4) once they hear of it.
    fn note_lost(&self, envelope: &Envelope) {
        if !matches!(envelope.event, Event::MessageStored { .. }) {
            self.unsaid.note(envelope);
        }
    }

    /// Pushes of one moment, in order. Whoever is nowhere else costs no word.
    async fn relay(&self, pushes: &[Outgoing]) -> Result<(), StoreFault> {
        let of_each = self.nodes_of(pushes.iter().map(|push| push.to.clone()).collect()).await?;
        let mut words = Vec::new();
        for Outgoing { to, push, trace_id } in pushes {
            let mut nodes = of_each.get(to).cloned().unwrap_or_default();
            let session = push.session();
            nodes.extend(session.into_iter().flat_map(|id| self.watchers.nodes_of(id)));
            nodes.remove(&self.node);
            if !nodes.is_empty() {
                let (to, push, trace_id) = (to.clone(), push.clone(), trace_id.clone());
                let word = NodeMessage::Push { to, push, trace_id };
                words.push((Audience::Nodes(nodes), word));
            }
        }
        self.say_words(&words).await
    }
}

/// Whose connections an event is for; nobody in particular for what everybody hears.
fn addressees(event: &Event) -> Vec<Person> {
    let Event::MessageStored { user_id, admin_id, .. } = event else { return Vec::new() };
    let agent = admin_id.clone().map(Person::Agent);
    [Person::User(user_id.clone())].into_iter().chain(agent).collect()
}

/// Who must hear an event whose addressees are on `nodes`.
fn audience(event: &Event, nodes: BTreeSet<NodeName>) -> Option<Audience> {
    match event {
        Event::MessageStored { .. } => (!nodes.is_empty()).then_some(Audience::Nodes(nodes)),
        // Few, and each changes the line that every console sees, or is for supervisors anywhere.
        Event::SessionOpened { .. }
        | Event::SessionAssigned { .. }
        | Event::SessionRequeued { .. }
        | Event::SessionEnded { .. }
        | Event::SessionRated { .. }
        | Event::AgentChanged { .. }
        | Event::NoteAdded { .. } => Some(Audience::Others),
    }
}

fn lost(fault: &StoreFault) {
    metrics::counter!("kefu_forward_lost_total").increment(1);
    tracing::debug!(%fault, "not said to other nodes");
}

#[async_trait]
impl Handler for Forward {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Never fails: waiting here would hold up everybody behind.
    async fn handle_together(&self, envelopes: &[Arc<Envelope>]) -> bool {
        let envelopes: Vec<_> = envelopes.iter().map(Arc::as_ref).collect();
        if let Err(fault) = self.say_together(&envelopes).await {
            lost(&fault);
            envelopes.iter().for_each(|envelope| self.note_lost(envelope));
        }
        true
    }

    /// Never fails, as above.
    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        if let Err(fault) = self.say(envelope).await {
            lost(&fault);
            self.note_lost(envelope);
        }
        Ok(())
    }
}

/// Pushes to a person's connections here, and what no event stands for also to those elsewhere.
///
/// Nobody waits for the other nodes: what goes there passes a queue, so that a slow Redis slows neither
/// receipts nor typing here.
pub(crate) struct Routed {
    here: Arc<dyn Connections>,
    elsewhere: mpsc::Sender<Outgoing>,
    unsaid: Arc<Unsaid>,
}

/// A push on its way to other nodes.
struct Outgoing {
    to: Person,
    push: Relayed,
    trace_id: Option<TraceId>,
}

impl Routed {
    pub(crate) fn start(
        here: Arc<dyn Connections>,
        forward: Forward,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let (elsewhere, queue) = mpsc::channel(QUEUE);
        let unsaid = Arc::clone(&forward.unsaid);
        tracker.spawn(relay(forward, queue, stop.clone()));
        Self { here, elsewhere, unsaid }
    }
}

async fn relay(forward: Forward, mut queue: mpsc::Receiver<Outgoing>, stop: CancellationToken) {
    let mut pushes = Vec::with_capacity(TOGETHER);
    loop {
        pushes.clear();
        tokio::select! {
            biased;
            taken = queue.recv_many(&mut pushes, TOGETHER) => if taken == 0 { return },
            // Only when nothing is queued: what was accepted is finished (L3).
            () = stop.cancelled() => return,
        }
        let of_all = traces(pushes.iter().filter_map(|push| push.trace_id.as_ref()));
        let span = tracing::info_span!("relay", trace_ids = %of_all);
        if let Err(fault) = forward.relay(&pushes).instrument(span).await {
            tracing::debug!(%fault, "not said to other nodes");
            forward.unsaid.note_push();
        }
    }
}

#[async_trait]
impl Pusher for Routed {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        let reach = self.here.push(to, push, except).await;
        if let Some(push) = Relayed::of(push) {
            let outgoing = Outgoing { to: to.clone(), push, trace_id: current_trace() };
            if self.elsewhere.try_send(outgoing).is_err() {
                self.unsaid.note_push();
            }
        }
        reach
    }

    async fn push_to_consoles(&self, push: &Push) {
        self.here.push_to_consoles(push).await;
    }
}

impl Relayed {
    /// What travels by itself. Everything else is made from its event on the node it is pushed from.
    fn of(push: &Push) -> Option<Self> {
        match *push {
            Push::PeerAck { session_id, msg_id, seq, status, .. } => {
                Some(Self::PeerAck { session_id, msg_id, seq, status })
            }
            Push::Typing { session_id, is_typing } => Some(Self::Typing { session_id, is_typing }),
            Push::Read { session_id, seq } => Some(Self::Read { session_id, seq }),
            Push::Page { session_id, ref page, time } => {
                Some(Self::Page { session_id, page: Arc::clone(page), time })
            }
            Push::OfflineNotice => Some(Self::OfflineNotice),
            Push::Message { .. }
            | Push::Assigned { .. }
            | Push::Ended { .. }
            | Push::Rated { .. }
            | Push::Requeued { .. }
            | Push::QueuePosition { .. }
            | Push::SessionNew(_)
            | Push::SessionRemoved { .. }
            | Push::QueueList { .. }
            | Push::AgentStatus { .. }
            | Push::WatchedTyping { .. }
            | Push::Board(_)
            | Push::Note { .. } => None,
        }
    }
}

impl Relayed {
    /// The session that it is about, if an agent may have lost it.
    pub(crate) const fn session(&self) -> Option<SessionId> {
        match self {
            Self::PeerAck { session_id, .. }
            | Self::Typing { session_id, .. }
            | Self::Read { session_id, .. }
            | Self::Page { session_id, .. } => Some(*session_id),
            Self::OfflineNotice => None,
        }
    }

    /// The push that it was, on the node of the person it is for.
    pub(crate) fn to_push(&self, to: &Person) -> Push {
        let side = match to {
            Person::User(_) => Side::User,
            Person::Agent(_) => Side::Agent,
        };
        match *self {
            Self::PeerAck { session_id, msg_id, seq, status } => {
                Push::PeerAck { session_id, msg_id, seq, status, side }
            }
            Self::Typing { session_id, is_typing } => Push::Typing { session_id, is_typing },
            Self::OfflineNotice => Push::OfflineNotice,
            Self::Read { session_id, seq } => Push::Read { session_id, seq },
            Self::Page { session_id, ref page, time } => {
                Push::Page { session_id, page: Arc::clone(page), time }
            }
        }
    }
}

#[cfg(test)]
mod tests;
