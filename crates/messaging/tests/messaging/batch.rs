//! The group-commit writer: when a group forms, what a bad row or a lost answer does to it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kefu_core::StoreFault;
use kefu_messaging::{BatchConfig, Batcher, Flush, Pending, SubmitError};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

type Script = dyn Fn(&[u32], usize) -> Option<StoreFault> + Send + Sync;

/// Notes every batch, lets each pass only with a permit, and fails as scripted.
struct Book {
    script: Box<Script>,
    permits: Semaphore,
    tried: watch::Sender<Vec<Vec<u32>>>,
    written: Mutex<Vec<u32>>,
}

#[async_trait]
impl Flush for Book {
    type Request = u32;
    type Answer = u32;

    async fn flush(&self, batch: &[u32]) -> Result<Vec<u32>, StoreFault> {
        self.tried.send_modify(|tried| tried.push(batch.to_vec()));
        let attempt = self.tried.borrow().len();
        self.permits.acquire().await.expect("open").forget();
        match (self.script)(batch, attempt) {
            Some(fault) => Err(fault),
            None => {
                self.written.lock().expect("no panic").extend(batch);
                Ok(batch.iter().map(|request| request * 10).collect())
            }
        }
    }
}

struct Desk {
    book: Arc<Book>,
    writer: Batcher<Book>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Desk {
    fn start(
        config: BatchConfig,
        permits: usize,
        script: impl Fn(&[u32], usize) -> Option<StoreFault> + Send + Sync + 'static,
    ) -> Self {
        let book = Arc::new(Book {
            script: Box::new(script),
            permits: Semaphore::new(permits),
            tried: watch::Sender::new(Vec::new()),
            written: Mutex::default(),
        });
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let writer = Batcher::start(&book, config, &tracker, &stop);
        Self { book, writer, tracker, stop }
    }

    /// A writer whose first flush, of 0 alone, is held, so that the rest forms groups.
    async fn held(
        config: BatchConfig,
        script: impl Fn(&[u32], usize) -> Option<StoreFault> + Send + Sync + 'static,
    ) -> (Self, Pending<u32>) {
        let desk = Self::start(config, 0, script);
        let first = desk.submit(0);
        desk.tried(1).await;
        (desk, first)
    }

    fn submit(&self, request: u32) -> Pending<u32> {
        self.writer.submit(&"one session", request).expect("queued")
    }

    async fn tried(&self, flushes: usize) {
        let mut tried = self.book.tried.subscribe();
        tried.wait_for(|tried| tried.len() >= flushes).await.expect("the book lives");
    }

    fn release(&self) {
        self.book.permits.add_permits(1_000);
    }

    fn batches(&self) -> Vec<Vec<u32>> {
        self.book.tried.borrow().clone()
    }

    fn written(&self) -> Vec<u32> {
        self.book.written.lock().expect("no panic").clone()
    }
}

fn sound(_: &[u32], _: usize) -> Option<StoreFault> {
    None
}

fn one_shard() -> BatchConfig {
    BatchConfig::default()
}

#[tokio::test]
async fn a_lone_request_is_flushed_at_once_and_alone() {
    let desk = Desk::start(one_shard(), 1_000, sound);
    for request in [1, 2, 3] {
        assert_eq!(desk.submit(request).await, Ok(request * 10));
    }
    assert_eq!(desk.batches(), [[1], [2], [3]], "no timer, no waiting for company");
}

#[tokio::test]
async fn a_group_forms_only_while_the_previous_flush_runs() {
    let (desk, first) = Desk::held(one_shard(), sound).await;
    let rest: Vec<_> = (1..=5).map(|request| desk.submit(request)).collect();
    desk.release();
    assert_eq!(first.await, Ok(0));
    for (pending, request) in rest.into_iter().zip(1..) {
        assert_eq!(pending.await, Ok(request * 10), "each its own answer");
    }
    assert_eq!(desk.batches(), [vec![0], vec![1, 2, 3, 4, 5]]);
}

#[tokio::test]
async fn a_group_is_no_larger_than_allowed() {
    let config = BatchConfig { max_batch: 2, ..one_shard() };
    let (desk, _first) = Desk::held(config, sound).await;
    let rest: Vec<_> = (1..=5).map(|request| desk.submit(request)).collect();
    desk.release();
    for pending in rest {
        pending.await.expect("written");
    }
    assert_eq!(desk.batches(), [vec![0], vec![1, 2], vec![3, 4], vec![5]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_key_keeps_its_order_over_all_shards() {
    let config = BatchConfig { shards: 4, max_batch: 3, ..one_shard() };
    let desk = Desk::start(config, 10_000, sound);
    let all: Vec<_> = (0..500_u32)
        .map(|request| desk.writer.submit(&(request % 7), request).expect("queued"))
        .collect();
    for pending in all {
        pending.await.expect("written");
    }
    let written = desk.written();
    assert_eq!(written.len(), 500);
    for key in 0..7 {
        let of_key: Vec<_> = written.iter().filter(|request| *request % 7 == key).collect();
        assert!(of_key.is_sorted(), "M6: key {key}");
    }
}

fn poison(bad: &'static [u32]) -> impl Fn(&[u32], usize) -> Option<StoreFault> {
    move |batch, _| {
        let hit = batch.iter().any(|request| bad.contains(request));
        hit.then(|| StoreFault::internal("a row the store cannot take"))
    }
}

#[tokio::test]
async fn bad_rows_alone_are_refused_and_the_others_keep_their_order() {
    for bad in [&[13][..], &[10, 25], &[17, 18], &[10, 11, 12, 13, 14, 15]] {
        let (desk, _first) = Desk::held(one_shard(), poison(bad)).await;
        let rest: Vec<_> = (10..=25).map(|request| (request, desk.submit(request))).collect();
        desk.release();
        for (request, pending) in rest {
            match pending.await {
                Ok(answer) => assert_eq!(answer, request * 10),
                Err(SubmitError::Store(StoreFault::Internal { .. })) => {
                    assert!(bad.contains(&request), "{request} is sound");
                }
                Err(error) => panic!("{request}: {error}"),
            }
        }
        let expected: Vec<_> =
            std::iter::once(0).chain(10..=25).filter(|n| !bad.contains(n)).collect();
        assert_eq!(desk.written(), expected, "each sound row once, in order, and no bad one");
    }
}

fn indeterminate() -> StoreFault {
    StoreFault::Indeterminate { reason: "the answer was lost".into() }
}

#[tokio::test]
async fn a_lost_answer_is_resolved_by_repeating() {
    let (desk, _first) =
        Desk::held(one_shard(), |_, attempt| (attempt == 2).then(indeterminate)).await;
    let rest = [desk.submit(1), desk.submit(2)];
    desk.release();
    for (pending, request) in rest.into_iter().zip(1..) {
        assert_eq!(pending.await, Ok(request * 10));
    }
    assert_eq!(desk.batches(), [vec![0], vec![1, 2], vec![1, 2]], "the very same batch");
}

#[tokio::test]
async fn an_answer_that_stays_lost_is_said_to_be_lost() {
    let (desk, _first) =
        Desk::held(one_shard(), |_, attempt| (attempt > 1).then(indeterminate)).await;
    let pending = desk.submit(1);
    desk.release();
    assert_eq!(pending.await, Err(SubmitError::Store(indeterminate())));
    assert_eq!(desk.batches().len(), 4, "three attempts, never split");
}

#[tokio::test]
async fn an_unavailable_store_answers_all_at_once() {
    let fault = || StoreFault::unavailable("disk full");
    let (desk, _first) =
        Desk::held(one_shard(), move |_, attempt| (attempt == 2).then(fault)).await;
    let rest = [desk.submit(1), desk.submit(2), desk.submit(3)];
    desk.release();
    for pending in rest {
        assert_eq!(pending.await, Err(SubmitError::Store(fault())));
    }
    assert_eq!(desk.batches().len(), 2, "neither repeated nor split");
    assert_eq!(desk.submit(4).await, Ok(40), "it heals by itself");
}

#[tokio::test]
async fn beyond_the_queue_the_caller_is_told_to_come_back() {
    let config = BatchConfig { queue: 2, ..one_shard() };
    let (desk, _first) = Desk::held(config, sound).await;
    let accepted = [desk.submit(1), desk.submit(2)];
    let refused = desk.writer.submit(&"one session", 3).map(|_| ());
    assert_eq!(refused, Err(SubmitError::Overloaded));
    desk.release();
    for pending in accepted {
        pending.await.expect("written");
    }
    assert_eq!(desk.written(), [0, 1, 2], "what was refused is not written");
}

#[tokio::test]
async fn after_stop_what_was_accepted_is_still_written_and_answered() {
    let (desk, first) = Desk::held(one_shard(), sound).await;
    let rest = [desk.submit(1), desk.submit(2)];
    desk.stop.cancel();
    desk.release();
    assert_eq!(first.await, Ok(0));
    for (pending, request) in rest.into_iter().zip(1..) {
        assert_eq!(pending.await, Ok(request * 10), "L3: writes are finished");
    }
    desk.tracker.close();
    desk.tracker.wait().await;
    let late = desk.writer.submit(&"one session", 3).map(|_| ());
    assert_eq!(late, Err(SubmitError::Closed));
}

#[tokio::test]
async fn an_asker_who_leaves_cancels_nothing() {
    let (desk, first) = Desk::held(one_shard(), sound).await;
    drop(first);
    drop(desk.submit(1));
    let last = desk.submit(2);
    desk.release();
    last.await.expect("written");
    assert_eq!(desk.written(), [0, 1, 2]);
}
