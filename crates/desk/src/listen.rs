//! From the other nodes to this one: what they committed, and what was missed while nobody listened
//! (N3, N4).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use kefu_core::snowflake::floor_of;
use kefu_core::{EventId, NodeName, StoreFault, Timestamp};
use kefu_events::{Envelope, Recent};
use kefu_messaging::Fresh;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::heal::Suspects;
use crate::sweep::{every, tick};
use crate::{Desk, Heard, NodeMessage};

/// Between a gap and the catch-up, at least: time for the wire to settle (N4).
const SETTLE: Duration = Duration::from_secs(2);
/// Up to this much longer, at a different moment on each node, so that they do not all read at once (N4).
const JITTER: Duration = Duration::from_secs(1);
/// Events read at a time (N4).
const BATCH: u32 = 50;
/// Between two batches: the store serves people first.
const PACE: Duration = Duration::from_millis(20);
/// Between two looks at the age of the leases.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How much earlier than the last word the catch-up begins: commits overtake each other, and clocks of
/// nodes may differ by five seconds (T3).
const OVERLAP: Duration = Duration::from_secs(10);

/// What this node heard, and what it may have missed.
struct Ear {
    /// This node's own wait after a gap.
    settle: Duration,
    recent: Recent,
    /// When the wire was last known to be whole.
    whole_until: Timestamp,
    /// When to catch up, if something may have been missed.
    due: Option<Instant>,
}

impl Desk {
    /// Listens to the other nodes until `stop`. Does nothing in a process that is the only one.
    pub(crate) async fn listen(self: Arc<Self>, stop: CancellationToken) {
        let Some(cluster) = &self.cluster else { return };
        let mut heard = cluster.nodes.subscribe().await;
        let mut ear = Ear {
            settle: SETTLE + jitter(self.source.node()),
            recent: Recent::default(),
            whole_until: self.source.clock().now(),
            due: None,
        };
        loop {
            let due = ear.due;
            let heard = tokio::select! {
                () = stop.cancelled() => return,
                () = settled(due) => {
                    self.catch_up(&mut ear).await;
                    continue;
                }
                heard = heard.recv() => heard,
            };
            match heard {
                Some(Heard::Message(word)) => self.hear(word, &mut ear).await,
                Some(Heard::Gap) => ear.gap(),
                None => return,
            }
        }
    }

    async fn hear(&self, word: NodeMessage, ear: &mut Ear) {
        match word {
            NodeMessage::Push { to, push } => {
                self.connections.push(&to, &push.to_push(&to), None).await;
            }
            NodeMessage::Event { envelope, message } => {
                if ear.due.is_none() {
                    ear.whole_until = self.source.clock().now();
                }
                if !ear.recent.insert(envelope.id) {
                    return;
                }
                let envelope = match message {
                    Some(message) => {
                        envelope.with_attachment(Arc::new(Fresh { message, origin: None }))
                    }
                    None => envelope,
                };
                self.tell_here(&envelope).await;
            }
        }
    }

    /// Tells the people of this node; never says it to other nodes again (N3).
    async fn tell_here(&self, envelope: &Envelope) {
        if let Err(error) = self.fanout.tell(envelope).await {
            // What is stored is not lost: healing and connecting read it (M4, M5).
            metrics::counter!("kefu_remote_events_dropped_total").increment(1);
            tracing::warn!(event_id = %envelope.id, %error, "another node's event is not told");
        }
    }

    /// Reads again what was not heard: changes from the outbox, messages by every connection's position.
    async fn catch_up(&self, ear: &mut Ear) {
        metrics::counter!("kefu_catch_ups_total").increment(1);
        let caught_up = self.catch_up_changes(ear).await;
        // Twice: what is behind at one look and has not moved by the next is lost (M5).
        let mut suspects = Suspects::default();
        let healed = match self.heal(&mut suspects).await {
            Ok(()) => self.heal(&mut suspects).await,
            Err(fault) => Err(fault),
        };
        match caught_up.and(healed) {
            Ok(()) => ear.whole(self.source.clock().now()),
            Err(fault) => {
                tracing::warn!(%fault, "catch-up is held up");
                ear.gap();
            }
        }
    }

    async fn catch_up_changes(&self, ear: &mut Ear) -> Result<(), StoreFault> {
        let mut after = floor_of(ear.whole_until.before(OVERLAP));
        loop {
            let batch = self.stores.outbox.list_changes(after, BATCH).await?;
            for envelope in &batch {
                if ear.recent.insert(envelope.id) && envelope.source != *self.source.node() {
                    self.tell_here(envelope).await;
                }
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
        let mut ticks = every(LOOK_EVERY);
        let mut known = Duration::ZERO;
        while tick(&mut ticks, &stop).await {
            // Emptying Redis is no event: its age is the only sign.
            let Ok(age) = self.coordination.presence.age().await else {
                known = Duration::MAX;
                continue;
            };
            if age < known {
                metrics::counter!("kefu_leases_restored_total").increment(1);
                for (conn, person) in self.connections.people() {
                    self.renew(&person, conn).await;
                }
            }
            known = age;
        }
    }
}

impl Ear {
    fn gap(&mut self) {
        self.due = Some(Instant::now() + self.settle);
    }

    fn whole(&mut self, now: Timestamp) {
        self.whole_until = now;
        self.due = None;
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
