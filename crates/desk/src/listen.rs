//! From the other nodes to this one: what they committed, and what was missed while nobody listened
//! (N3, N4).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Fuse;
use futures_util::{FutureExt, StreamExt, stream};
use kefu_core::snowflake::floor_of;
use kefu_core::{ErrorCode, EventId, NodeName, Person, Timestamp};
use kefu_events::Envelope;
use kefu_messaging::Fresh;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::heal::Suspects;
use crate::loss::{Look, Losses};
use crate::sweep::{every, tick};
use crate::{Desk, DeskError, Heard, NodeMessage, Relayed};

/// Between a gap and the catch-up, at least: time for the wire to settle (N4).
const SETTLE: Duration = Duration::from_secs(2);
/// Up to this much longer, at a different moment on each node, so that they do not all read at once (N4).
const JITTER: Duration = Duration::from_secs(1);
/// Between the two looks of a catch-up: what was only on its way has arrived by then.
const LOOKS_APART: Duration = Duration::from_millis(500);
/// Events read at a time (N4).
const BATCH: u32 = 50;
/// Between two batches: the store serves people first.
const PACE: Duration = Duration::from_millis(20);
/// Leases given back at once: everybody's within a second, and no burst.
const RENEWALS: usize = 64;
/// Between two looks at the age of the leases.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How much earlier than the last word the catch-up begins: commits overtake each other, and clocks of
/// nodes may differ by five seconds (T3).
const OVERLAP: Duration = Duration::from_secs(10);

/// What this node may have missed.
struct Ear {
    /// This node's own wait after a gap.
    settle: Duration,
    /// When the wire was last known to be whole.
    whole_until: Timestamp,
    /// When to catch up, if something may have been missed.
    due: Option<Instant>,
    /// When the catch-up under way began.
    catching_up: Option<Timestamp>,
}

impl Desk {
    /// Listens to the other nodes until `stop`. Does nothing in a process that is the only one.
    ///
    /// What comes in is told during a catch-up too: waiting for its end would overflow the queue, which
    /// is the next gap.
    pub(crate) async fn listen(self: Arc<Self>, stop: CancellationToken) {
        let Some(cluster) = &self.cluster else { return };
        let mut heard = cluster.nodes.subscribe().await;
        let mut ear = Ear {
            settle: SETTLE + jitter(self.source.node()),
            whole_until: self.source.clock().now(),
            due: None,
            catching_up: None,
        };
        let mut catch_up = pin!(Fuse::terminated());
        loop {
            let due = ear.due.filter(|_| ear.catching_up.is_none());
            tokio::select! {
                () = stop.cancelled() => return,
                () = settled(due) => {
                    let since = ear.begin(self.source.clock().now());
                    catch_up.set(self.catch_up(since).fuse());
                }
                outcome = &mut catch_up => ear.end(outcome),
                () = self.missed.notified() => ear.gap(),
                heard = heard.recv() => match heard {
                    Some(Heard::Message(word)) => self.hear(word, &mut ear).await,
                    Some(Heard::Gap) => ear.gap(),
                    None => return,
                },
            }
        }
    }

    async fn hear(&self, word: NodeMessage, ear: &mut Ear) {
        metrics::counter!("kefu_remote_heard_total", "kind" => word.kind()).increment(1);
        match word {
            NodeMessage::Push { to, push, trace_id } => {
                // With the trace of the frame on the other node.
                let span = match &trace_id {
                    Some(trace_id) => tracing::info_span!("push", %trace_id),
                    None => tracing::Span::none(),
                };
                self.push_here(&to, &push).instrument(span).await;
            }
            NodeMessage::Watching { node, sessions, board } => {
                self.watchers.heard(node, sessions, board);
            }
            NodeMessage::Event { envelope, message } => {
                ear.heard(self.source.clock().now());
                let envelope = match message {
                    Some(message) => {
                        envelope.with_attachment(Arc::new(Fresh { message, origin: None }))
                    }
                    None => envelope,
                };
                if self.tell_here(&envelope).await.is_err() {
                    ear.gap();
                }
            }
        }
    }

    /// Its node may not have heard yet who lost the session (A3).
    async fn push_here(&self, to: &Person, relayed: &Relayed) {
        let push = relayed.to_push(to);
        let pushed = async {
            self.connections.push(to, &push, None).await;
        };
        match relayed.session() {
            Some(session) => drop(self.turns.unless_barred(session, to, pushed).await),
            None => pushed.await,
        }
        self.watchers.see(to, &push).await;
    }

    /// Tells the people of this node; never says it to other nodes again (N3). Fails if it is to be read
    /// again later.
    async fn tell_here(&self, envelope: &Envelope) -> Result<(), DeskError> {
        // With the trace of the frame on the other node.
        let telling = self.fanout.tell(envelope).instrument(envelope.span());
        let Err(error) = telling.await else { return Ok(()) };
        metrics::counter!("kefu_remote_events_dropped_total").increment(1);
        tracing::warn!(event_id = %envelope.id, %error, "another node's event is not told");
        // The same again would fail again. What is stored is not lost: healing and connecting read it
        // (M4, M5).
        if error.code() == ErrorCode::Internal { Ok(()) } else { Err(error) }
    }

    /// Reads again what was not heard: changes from the outbox, messages by every connection's position,
    /// and how the newest messages stand.
    async fn catch_up(&self, since: Timestamp) -> Result<(), DeskError> {
        metrics::counter!("kefu_catch_ups_total").increment(1);
        self.catch_up_changes(since).await?;
        // Twice: what is behind at one look and has not moved by the next is lost (M5).
        let mut suspects = Suspects::default();
        self.heal(&mut suspects).await?;
        tokio::time::sleep(LOOKS_APART).await;
        self.heal(&mut suspects).await?;
        Ok(self.repeat_receipts().await?)
    }

    async fn catch_up_changes(&self, since: Timestamp) -> Result<(), DeskError> {
        let mut after = floor_of(since.before(OVERLAP));
        loop {
            let batch = self.stores.outbox.list_changes(after, BATCH).await?;
            for envelope in batch.iter().filter(|row| row.source != *self.source.node()) {
                self.tell_here(envelope).await?;
            }
            let Some(last) = batch.last().filter(|_| batch.len() == BATCH as usize) else {
                return Ok(());
            };
            after = EventId::get(last.id);
            // A chosen pace (N4).
            tokio::time::sleep(PACE).await;
        }
    }

    /// Gives every connection of this node its lease back when the leases were lost at once (P4), and
    /// keeps doing so until `stop`.
    pub(crate) async fn keep_leases(self: Arc<Self>, stop: CancellationToken) {
        let this = &self;
        let (mut ticks, mut losses) = (every(LOOK_EVERY), Losses::default());
        while tick(&mut ticks, &stop).await {
            let presence = self.coordination.presence.as_ref();
            if losses.look(presence, self.source.clock().as_ref()).await == Look::Lost {
                metrics::counter!("kefu_leases_restored_total").increment(1);
                let renew = |(conn, person)| async move { this.renew(&person, conn).await };
                let people = stream::iter(self.connections.people());
                people.for_each_concurrent(RENEWALS, renew).await;
                // Without a lease here, nobody had a word for this node.
                self.missed.notify_one();
            }
        }
    }
}

impl Ear {
    /// Gaps in quick succession do not put the catch-up off: it reads what all of them hid.
    fn gap(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + self.settle);
    }

    fn heard(&mut self, now: Timestamp) {
        if self.due.is_none() && self.catching_up.is_none() {
            self.whole_until = now;
        }
    }

    /// A catch-up begins; says from when on.
    fn begin(&mut self, now: Timestamp) -> Timestamp {
        self.due = None;
        self.catching_up = Some(now);
        self.whole_until
    }

    fn end(&mut self, outcome: Result<(), DeskError>) {
        let began = self.catching_up.take();
        match outcome {
            Ok(()) => self.whole_until = began.unwrap_or(self.whole_until),
            Err(error) => {
                tracing::warn!(%error, "catch-up is held up");
                self.gap();
            }
        }
    }
}

/// The same for a node every time, and different between nodes.
fn jitter(node: &NodeName) -> Duration {
    let mut hasher = DefaultHasher::new();
    node.hash(&mut hasher);
    let millis = u64::try_from(JITTER.as_millis()).unwrap_or(1);
    Duration::from_millis(hasher.finish() % millis)
}

async fn settled(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
