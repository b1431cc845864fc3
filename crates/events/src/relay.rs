//! The tasks behind the bus: one per handler, and the one that confirms outbox rows in batches.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kefu_core::{Clock, EventId, Timestamp};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::bus::{Behind, passes};
use crate::{Backlog, Envelope, Handler, Interceptor, Outbox, Recent, traces};

/// Rows read from the outbox at a time.
const PAGE: u32 = 256;
/// Events given to a handler at once, if it takes them so.
const TOGETHER: usize = 64;
/// Confirmations wait this long for company: each flush costs a commit, and nobody waits for it.
const CONFIRM_EVERY: Duration = Duration::from_millis(250);
/// Confirmations in one statement, and room in front of the confirmer.
const CONFIRM_BATCH: usize = 1_024;
/// Events remembered that only some handlers have dealt with.
const PARTLY: usize = 65_536;
/// First and last pause after a failed attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Feeds one durable handler from its queue, or from the outbox while it is behind.
pub(crate) struct Relay {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) interceptors: Arc<[Arc<dyn Interceptor>]>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) backlog: Backlog,
    pub(crate) confirmer: Confirmer,
    pub(crate) behind: Arc<Behind>,
    pub(crate) stop: CancellationToken,
}

impl Relay {
    pub(crate) async fn run(self, mut queue: mpsc::Receiver<Arc<Envelope>>) {
        let mut handled = <Recent>::default();
        // What a former process committed and did not live to hand over.
        self.behind.set();
        loop {
            if self.behind.is_set() {
                self.catch_up(&mut queue, &mut handled).await;
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = self.behind.wait() => {}
                Some(envelope) = queue.recv() => {
                    let mut waiting = vec![envelope];
                    let more = std::iter::from_fn(|| queue.try_recv().ok());
                    waiting.extend(more.take(TOGETHER - 1));
                    self.deal_together(&waiting, &mut handled).await;
                }
            }
        }
        while let Ok(envelope) = queue.try_recv() {
            self.deal(&envelope, &mut handled).await;
        }
    }

    /// Empties the queue, then reads the outbox until nothing new is in it.
    async fn catch_up(&self, queue: &mut mpsc::Receiver<Arc<Envelope>>, handled: &mut Recent) {
        while let Ok(envelope) = queue.try_recv() {
            self.deal(&envelope, handled).await;
        }
        if self.sweep(handled).await.is_none() {
            return;
        }
        // The order matters: what was published before the flag fell was committed before it, so
        // this second sweep sees it; what comes after goes through the queue.
        self.behind.clear();
        if self.sweep(handled).await.is_none() {
            self.behind.set();
        }
    }

    /// One reading of the whole backlog. `None` when it was cut short by shutdown.
    async fn sweep(&self, handled: &mut Recent) -> Option<()> {
        let mut after = None;
        loop {
            let rows = self.page(after).await?;
            for envelope in &rows {
                if self.stop.is_cancelled() {
                    return None;
                }
                // What was stopped on its way to the queue is stopped here too.
                if self.backlog.holds(envelope) && passes(&self.interceptors, envelope) {
                    self.deal(envelope, handled).await;
                }
            }
            if rows.len() < PAGE as usize {
                return Some(());
            }
            after = rows.last().map(|last| last.id);
        }
    }

    async fn page(&self, after: Option<EventId>) -> Option<Vec<Envelope>> {
        let mut backoff = BACKOFF.0;
        loop {
            match self.outbox.list_unconfirmed(Timestamp(i64::MAX), after, PAGE).await {
                Ok(rows) => return Some(rows),
                Err(fault) => self.pause(&fault.to_string(), &mut backoff).await?,
            }
        }
    }

    /// Handles what has come by now, at once if the handler can.
    async fn deal_together(&self, waiting: &[Arc<Envelope>], handled: &mut Recent) {
        let fresh = waiting.iter().filter(|envelope| !handled.contains(envelope.id));
        let fresh: Vec<_> = fresh.map(Arc::clone).collect();
        let together = || {
            let of_all = traces(fresh.iter().map(|envelope| &envelope.trace_id));
            let handler = self.handler.name();
            let span = tracing::info_span!("events", handler, trace_ids = %of_all);
            self.handler.handle_together(&fresh).instrument(span)
        };
        if fresh.len() > 1 && together().await {
            for envelope in &fresh {
                handled.insert(envelope.id);
                self.confirmer.done(envelope.id, self.handler.name()).await;
            }
            return;
        }
        for envelope in &fresh {
            self.deal(envelope, handled).await;
        }
    }

    /// Handles an event unless it was handled before; repeats until it succeeds or shutdown comes.
    async fn deal(&self, envelope: &Envelope, handled: &mut Recent) {
        if handled.contains(envelope.id) {
            return;
        }
        let mut backoff = BACKOFF.0;
        while let Err(error) = self.handler.handle(envelope).instrument(envelope.span()).await {
            if self.pause(&error.to_string(), &mut backoff).await.is_none() {
                return;
            }
        }
        handled.insert(envelope.id);
        self.confirmer.done(envelope.id, self.handler.name()).await;
    }

    /// `None` when shutdown came first.
    async fn pause(&self, reason: &str, backoff: &mut Duration) -> Option<()> {
        tracing::warn!(handler = self.handler.name(), reason, "event handling is held up");
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = tokio::time::sleep(*backoff) => {
                *backoff = (*backoff * 2).min(BACKOFF.1);
                Some(())
            }
        }
    }
}

/// Feeds one best-effort handler.
pub(crate) async fn best_effort(
    handler: Arc<dyn Handler>,
    mut queue: mpsc::Receiver<Arc<Envelope>>,
    stop: CancellationToken,
) {
    loop {
        let envelope = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = queue.recv() => next,
        };
        let Some(envelope) = envelope else { return };
        if let Err(error) = handler.handle(&envelope).instrument(envelope.span()).await {
            metrics::counter!("kefu_bus_dropped_total", "handler" => handler.name()).increment(1);
            tracing::warn!(handler = handler.name(), %error, "event dropped");
        }
    }
}

/// Confirms an event once every durable handler has dealt with it.
#[derive(Clone)]
pub(crate) struct Confirmer {
    queue: mpsc::Sender<Done>,
}

/// One handler's word about one event.
type Done = (EventId, &'static str);

impl Confirmer {
    pub(crate) fn start(
        handlers: usize,
        outbox: Arc<dyn Outbox>,
        clock: Arc<dyn Clock>,
        tracker: &TaskTracker,
    ) -> Self {
        let (queue, receiver) = mpsc::channel(CONFIRM_BATCH);
        tracker.spawn(confirm(handlers, receiver, outbox, clock));
        Self { queue }
    }

    async fn done(&self, id: EventId, handler: &'static str) {
        // The receiver outlives every sender; an error here can only mean the runtime is going down.
        let _ = self.queue.send((id, handler)).await;
    }
}

async fn confirm(
    handlers: usize,
    mut queue: mpsc::Receiver<Done>,
    outbox: Arc<dyn Outbox>,
    clock: Arc<dyn Clock>,
) {
    let mut partly = BTreeMap::new();
    let mut ready = Vec::new();
    let mut open = true;
    while open {
        // What could not be confirmed is tried again, with or without company.
        let first = match ready.is_empty() {
            true => Some(queue.recv().await),
            false => tokio::time::timeout(BACKOFF.1, queue.recv()).await.ok(),
        };
        open = first != Some(None);
        let deadline = tokio::time::Instant::now() + CONFIRM_EVERY;
        let mut next = first.flatten();
        while let Some(done) = next {
            ready.extend(note(done, handlers, &mut partly));
            if ready.len() >= CONFIRM_BATCH {
                break;
            }
            next = tokio::time::timeout_at(deadline, queue.recv()).await.ok().flatten();
        }
        if ready.is_empty() {
            continue;
        }
        match outbox.confirm(&ready, clock.now()).await {
            Ok(()) => ready.clear(),
            // Rows that stay unconfirmed are read again after a restart, and handled idempotently.
            Err(fault) => tracing::warn!(%fault, count = ready.len(), "outbox is not confirmed"),
        }
    }
}

/// The event, once every handler has dealt with it. One handler's second word counts for nothing.
fn note(
    (id, handler): Done,
    handlers: usize,
    partly: &mut BTreeMap<EventId, HashSet<&'static str>>,
) -> Option<EventId> {
    if handlers == 1 {
        return Some(id);
    }
    let done = partly.entry(id).or_default();
    done.insert(handler);
    if done.len() < handlers {
        // What another process confirmed meanwhile is never done by the handlers that are behind here.
        // The row of what is forgotten wrongly stays, and is read again.
        if partly.len() > PARTLY {
            partly.pop_first();
        }
        return None;
    }
    partly.remove(&id);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_processes_confirm_is_not_remembered_for_ever() {
        let mut partly = BTreeMap::new();
        let id = |raw| EventId::new(raw).expect("positive");
        for raw in 1..=100_000 {
            assert_eq!(note((id(raw), "one"), 2, &mut partly), None);
        }
        assert_eq!(partly.len(), PARTLY);
        assert_eq!(note((id(100_000), "one"), 2, &mut partly), None, "one handler, twice");
        assert_eq!(note((id(100_000), "two"), 2, &mut partly), Some(id(100_000)));
    }
}
