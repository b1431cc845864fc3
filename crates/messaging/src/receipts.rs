//! Acknowledging, as a use case: group commit, then tell the sender's side (M3).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{ConnId, StoreFault};
use kefu_events::{traced, traces};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::retry::RetryHandle;
use crate::{
    BatchConfig, Batcher, Flush, MessageStatus, MessageStore, MessagingError, Push, Pusher,
    ReceiptOutcome, ReceiptRequest, Side, StatusChange, decide_receipts,
};

/// Records receipts behind the group-commit writer.
pub struct Receipts {
    writer: Batcher<RecordFlush>,
}

struct RecordFlush {
    store: Arc<dyn MessageStore>,
    pusher: Arc<dyn Pusher>,
    retries: RetryHandle,
}

impl Receipts {
    pub(crate) fn start(
        store: Arc<dyn MessageStore>,
        pusher: Arc<dyn Pusher>,
        retries: RetryHandle,
        config: BatchConfig,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let flush = Arc::new(RecordFlush { store, pusher, retries });
        Self { writer: Batcher::start(&flush, config, tracker, stop) }
    }

    /// Takes one report; answers after its commit.
    ///
    /// # Errors
    /// `not_found` for a message the reporter may not see, `forbidden` for one of their own side.
    pub async fn report(&self, request: ReceiptRequest) -> Result<(), MessagingError> {
        let key = request.msg_id;
        match self.writer.submit(&key, request)?.await? {
            ReceiptOutcome::Taken => Ok(()),
            ReceiptOutcome::Refused(refusal) => Err(refusal.into()),
        }
    }
}

#[async_trait]
impl Flush for RecordFlush {
    type Request = ReceiptRequest;
    type Answer = ReceiptOutcome;

    async fn flush(&self, batch: &[ReceiptRequest]) -> Result<Vec<ReceiptOutcome>, StoreFault> {
        let of_all = traces(batch.iter().filter_map(|report| report.trace_id.as_ref()));
        let verdict = self
            .store
            .record(batch, &|snapshot, batch| decide_receipts(snapshot, batch))
            .instrument(tracing::info_span!("receipts", trace_ids = %of_all))
            .await?;
        for change in &verdict.changes {
            self.announce(change).await;
        }
        self.share_cursors(batch, &verdict.changes).await;
        Ok(verdict.outcomes)
    }
}

impl RecordFlush {
    /// Tells the reader's other devices how far the other side's messages are read (B64).
    async fn share_cursors(&self, batch: &[ReceiptRequest], changes: &[StatusChange]) {
        let read = changes.iter().filter(|change| change.message.status == MessageStatus::Read);
        let mut cursors: BTreeMap<_, &StatusChange> = BTreeMap::new();
        for change in read {
            let side = change.message.sender.side().other();
            let cursor = cursors.entry((change.message.session_id, side)).or_insert(change);
            if cursor.message.seq < change.message.seq {
                *cursor = change;
            }
        }
        for ((session_id, side), change) in cursors {
            let message = &change.message;
            // A change that nobody named was covered by one that was.
            let named = batch.iter().find(|report| report.msg_id == message.msg_id);
            let origin = named.and_then(|report| report.origin);
            let push = Push::Read { session_id, seq: message.seq };
            self.push(change, side, &push, origin).await;
        }
    }

    /// Pushes because of a change, to a side of its session as it is held now (M2), with the trace of the report.
    async fn push(&self, change: &StatusChange, side: Side, push: &Push, except: Option<ConnId>) {
        let trace = change.trace_id.as_ref();
        let span = match trace {
            Some(trace_id) => tracing::info_span!("receipt", %trace_id),
            None => tracing::Span::none(),
        };
        let pushed = self.pusher.push_to_side(&change.session, side, push, except);
        traced(trace, span, pushed).await;
    }

    /// One `peer_ack` a message, only after its receipt is committed.
    async fn announce(&self, change: &StatusChange) {
        let message = &change.message;
        self.retries.settle(message.msg_id);
        let side = message.sender.side();
        let push = Push::PeerAck {
            session_id: message.session_id,
            msg_id: message.msg_id,
            seq: message.seq,
            status: message.status,
            side,
        };
        self.push(change, side, &push, None).await;
    }
}
