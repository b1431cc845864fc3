//! The group-commit writer: a batch is what queued while the previous flush ran.
//!
//! No timer: an idle writer flushes a lone request at once. Requests with the same key always go
//! through the same shard, so their order is kept.

use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use kefu_core::StoreFault;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Repetitions of a batch whose commit answer was lost. Keys make a repetition harmless.
const RESOLVE_ATTEMPTS: u32 = 3;

/// Writes batches.
///
/// # Contract
/// - All of a batch is written, or nothing and an error.
/// - Repeating a batch that was written is a no-op with the same answers.
/// - `Ok` holds one answer per request, in order.
#[async_trait]
pub trait Flush: Send + Sync + 'static {
    /// One request.
    type Request: Send + Sync;
    /// Its answer.
    type Answer: Send;

    /// Writes one batch.
    async fn flush(&self, batch: &[Self::Request]) -> Result<Vec<Self::Answer>, StoreFault>;
}

/// Sizes of a writer.
#[derive(Debug, Clone, Copy)]
pub struct BatchConfig {
    /// Parallel flushes. One for a store with a single writer.
    pub shards: usize,
    /// Requests in one flush.
    pub max_batch: usize,
    /// Requests waiting per shard; beyond it the caller is told to come back.
    pub queue: usize,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self { shards: 1, max_batch: 256, queue: 4_096 }
    }
}

/// Why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The queue is full; nothing was written.
    #[error("too many requests are waiting")]
    Overloaded,
    /// The writer has stopped; nothing was written.
    #[error("the writer has stopped")]
    Closed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

type Reply<A> = oneshot::Sender<Result<A, StoreFault>>;

struct Job<F: Flush> {
    request: F::Request,
    reply: Reply<F::Answer>,
}

/// Queues requests for group commits.
pub struct Batcher<F: Flush> {
    shards: Vec<mpsc::Sender<Job<F>>>,
}

impl<F: Flush> Batcher<F> {
    /// Starts the shards on `tracker`. After `stop` they take nothing more, finish what is queued
    /// and end.
    #[must_use]
    pub fn start(
        flush: &Arc<F>,
        config: BatchConfig,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let (writer, shards) = Self::with_shards(flush, config, stop);
        for shard in shards {
            tracker.spawn(shard);
        }
        writer
    }

    /// The writer and its shards, which the caller runs: on a runtime of its own, or on a scheduler
    /// of a test. Each ends after `stop`, as with [`Self::start`].
    pub fn with_shards(
        flush: &Arc<F>,
        config: BatchConfig,
        stop: &CancellationToken,
    ) -> (Self, Vec<impl Future<Output = ()> + Send + 'static + use<F>>) {
        let (shards, tasks) = (0..config.shards.max(1))
            .map(|_| {
                let (sender, receiver) = mpsc::channel(config.queue.max(1));
                let (flush, stop) = (Arc::clone(flush), stop.clone());
                (sender, run(flush, receiver, config.max_batch.max(1), stop))
            })
            .unzip();
        (Self { shards }, tasks)
    }

    /// Queues a request, at once and in call order; the returned future is its answer.
    ///
    /// # Errors
    /// [`SubmitError::Overloaded`] or [`SubmitError::Closed`]: nothing was queued.
    pub fn submit(
        &self,
        key: &impl Hash,
        request: F::Request,
    ) -> Result<Pending<F::Answer>, SubmitError> {
        let (reply, answer) = oneshot::channel();
        match self.shard(key).try_send(Job { request, reply }) {
            Ok(()) => Ok(Pending { answer }),
            Err(mpsc::error::TrySendError::Full(_)) => Err(SubmitError::Overloaded),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(SubmitError::Closed),
        }
    }

    fn shard(&self, key: &impl Hash) -> &mpsc::Sender<Job<F>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let count = self.shards.len() as u64;
        let index = usize::try_from(hasher.finish() % count).unwrap_or_default();
        &self.shards[index]
    }
}

/// The answer to a queued request. Dropping it does not undo the request.
#[derive(Debug)]
pub struct Pending<A> {
    answer: oneshot::Receiver<Result<A, StoreFault>>,
}

impl<A> Future for Pending<A> {
    type Output = Result<A, SubmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context).map(|answer| match answer {
            Ok(answer) => answer.map_err(SubmitError::Store),
            Err(_) => Err(SubmitError::Closed),
        })
    }
}

async fn run<F: Flush>(
    flush: Arc<F>,
    mut queue: mpsc::Receiver<Job<F>>,
    max_batch: usize,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(max_batch);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled(), if !queue.is_closed() => queue.close(),
            count = queue.recv_many(&mut batch, max_batch) => {
                if count == 0 {
                    return;
                }
                write(flush.as_ref(), std::mem::take(&mut batch)).await;
            }
        }
    }
}

/// Writes a batch; a batch that holds a poison row is halved until that row stands alone.
async fn write<F: Flush>(flush: &F, batch: Vec<Job<F>>) {
    let mut pieces = vec![batch];
    while let Some(piece) = pieces.pop() {
        let (requests, replies): (Vec<_>, Vec<_>) =
            piece.into_iter().map(|job| (job.request, job.reply)).unzip();
        match resolve(flush, &requests).await {
            Ok(answers) => {
                for (reply, answer) in replies.into_iter().zip(answers) {
                    // The asker may be gone; what was written stays written.
                    let _ = reply.send(Ok(answer));
                }
            }
            Err(StoreFault::Internal { .. }) if requests.len() > 1 => {
                let mut jobs: Vec<_> = requests
                    .into_iter()
                    .zip(replies)
                    .map(|(request, reply)| Job { request, reply })
                    .collect();
                let later = jobs.split_off(jobs.len() / 2);
                // The earlier half is popped first: a session's order survives the split.
                pieces.push(later);
                pieces.push(jobs);
            }
            Err(fault) => {
                for reply in replies {
                    let _ = reply.send(Err(fault.clone()));
                }
            }
        }
    }
}

/// Repeats a batch whose outcome is unknown: the keys turn what was written into answers.
async fn resolve<F: Flush>(
    flush: &F,
    requests: &[F::Request],
) -> Result<Vec<F::Answer>, StoreFault> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match flush.flush(requests).await {
            Err(StoreFault::Indeterminate { .. }) if attempt < RESOLVE_ATTEMPTS => {}
            result => return result,
        }
    }
}
