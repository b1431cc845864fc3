//! Sending, as a use case: queue, group commit, hand the events to the bus, answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use kefu_core::{SessionId, StoreFault, TraceId};
use kefu_events::{EventSource, traces};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::{
    AppendOutcome, AppendRequest, AppendTarget, BatchConfig, Batcher, Flush, MessageStore,
    MessagingError, Pending, Stored, decide_append,
};

/// Stores messages behind the group-commit writer.
pub struct Sends {
    writer: Batcher<AppendFlush>,
}

struct AppendFlush {
    store: Arc<dyn MessageStore>,
    source: EventSource,
    trace: TraceId,
}

impl Sends {
    /// Starts the writer on `tracker`; it finishes what is queued after `stop`.
    #[must_use]
    pub fn start(
        store: Arc<dyn MessageStore>,
        source: EventSource,
        trace: TraceId,
        config: BatchConfig,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let flush = Arc::new(AppendFlush { store, source, trace });
        Self { writer: Batcher::start(&flush, config, tracker, stop) }
    }

    /// Queues a send, in call order; the future is its answer, given after the commit (A2).
    ///
    /// A session's sends share a shard. `open_session` is what the caller believes to be the user's
    /// open session; it only picks the shard of a send that names none, so that a pipeline of both
    /// forms keeps its order (M6). Correctness rests on the session's lock.
    ///
    /// # Errors
    /// `overloaded` or `unavailable` at once when it cannot be queued.
    pub fn send(
        &self,
        request: AppendRequest,
        open_session: Option<SessionId>,
    ) -> Result<PendingSend, MessagingError> {
        let shard = match &request.target {
            AppendTarget::Session(session) => Some(*session),
            AppendTarget::OpenSessionOf(_) => open_session,
        };
        Ok(PendingSend { pending: self.writer.submit(&shard, request)? })
    }
}

/// The answer to a queued send. Dropping it does not undo the send.
#[derive(Debug)]
pub struct PendingSend {
    pending: Pending<AppendOutcome>,
}

impl Future for PendingSend {
    type Output = Result<Stored, MessagingError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(context).map(|answer| match answer? {
            AppendOutcome::Stored(stored) => Ok(stored),
            AppendOutcome::Refused(refusal) => Err(refusal.into()),
        })
    }
}

#[async_trait]
impl Flush for AppendFlush {
    type Request = AppendRequest;
    type Answer = AppendOutcome;

    async fn flush(&self, batch: &[AppendRequest]) -> Result<Vec<AppendOutcome>, StoreFault> {
        let context = self.source.context(self.trace.clone());
        let of_all = traces(batch.iter().map(|request| &request.trace_id));
        let verdict = self
            .store
            .append(
                batch,
                &|snapshot, batch, ids| decide_append(snapshot, batch, &context, ids),
                self.source.ids(),
            )
            .instrument(tracing::info_span!("append", trace_ids = %of_all))
            .await
            .inspect_err(|fault| self.source.recover(fault))?;
        metrics::counter!("kefu_messages_stored_total").increment(verdict.messages.len() as u64);
        metrics::histogram!("kefu_append_batch").record(batch.len() as f64);
        self.source.publish(verdict.events);
        Ok(verdict.outcomes)
    }
}
