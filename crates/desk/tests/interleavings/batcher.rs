//! The group-commit writer: senders, shards and the stop, switched at every flush and submit.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kefu_core::StoreFault;
use kefu_messaging::{BatchConfig, Batcher, Flush, SubmitError};
use shuttle::future::{block_on, spawn, yield_now};
use tokio_util::sync::CancellationToken;

use crate::explore::{holds, is_caught};

const SCHEDULES: usize = 3_000;
const CONFIG: BatchConfig = BatchConfig { shards: 2, max_batch: 3, queue: 16 };
const SENDERS: u32 = 3;
const EACH: u32 = 3;
/// The one request that the store never takes.
const POISON: Request = (1, 1);

/// A sender, and the number of its request.
type Request = (u32, u32);

/// Stores each request once; loses two answers after the write, one fewer than the writer bears.
#[derive(Default)]
struct Book {
    written: Mutex<Vec<Request>>,
    flushes: Mutex<u32>,
    /// Whoever shared a batch with the poison is refused from then on, as by a writer that gives up
    /// the whole batch instead of parting it.
    is_whole: bool,
    refused: Mutex<BTreeSet<Request>>,
}

impl Book {
    fn written(&self) -> Vec<Request> {
        self.written.lock().expect("no panic").clone()
    }

    fn refuses(&self, batch: &[Request]) -> bool {
        let mut refused = self.refused.lock().expect("no panic");
        if self.is_whole && batch.contains(&POISON) {
            refused.extend(batch);
        }
        batch.iter().any(|request| *request == POISON || refused.contains(request))
    }
}

#[async_trait]
impl Flush for Book {
    type Request = Request;
    type Answer = Request;

    async fn flush(&self, batch: &[Request]) -> Result<Vec<Request>, StoreFault> {
        yield_now().await;
        if self.refuses(batch) {
            return Err(StoreFault::internal("poison"));
        }
        let fresh: Vec<_> = {
            let known = self.written();
            batch.iter().filter(|request| !known.contains(request)).copied().collect()
        };
        self.written.lock().expect("no panic").extend(fresh);
        let is_lost = {
            let mut flushes = self.flushes.lock().expect("no panic");
            *flushes += 1;
            matches!(*flushes, 2 | 4)
        };
        yield_now().await;
        if is_lost {
            return Err(StoreFault::Indeterminate { reason: "lost".to_owned() });
        }
        Ok(batch.to_vec())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// The stop ends the shards at once, with what is queued.
    Abandoned,
    /// Requests are spread over the shards one by one, not by sender.
    Scattered,
    /// A batch with the poison in it fails as a whole.
    Unparted,
}

/// What came of one request that was taken.
type Answered = (Request, Result<Request, SubmitError>);

async fn send(writer: Arc<Batcher<Book>>, sender: u32, mistake: Mistake) -> Vec<Answered> {
    let mut pending = Vec::new();
    for number in 0..EACH {
        let request = (sender, number);
        let queued = match mistake {
            Mistake::Scattered => writer.submit(&request, request),
            Mistake::None | Mistake::Abandoned | Mistake::Unparted => {
                writer.submit(&sender, request)
            }
        };
        match queued {
            Ok(answer) => pending.push((request, answer)),
            Err(refused) => assert_eq!(refused, SubmitError::Closed),
        }
        yield_now().await;
    }
    let mut answers = Vec::new();
    for (request, answer) in pending {
        answers.push((request, answer.await));
    }
    answers
}

fn check(answers: &[Answered], written: &[Request]) {
    let mut told = BTreeSet::new();
    for (request, answer) in answers {
        match answer {
            Ok(answer) => {
                assert_eq!(answer, request, "the answer of another request");
                told.insert(*request);
            }
            Err(SubmitError::Closed) => panic!("taken and abandoned"),
            Err(_) => assert_eq!(*request, POISON, "a sound request suffered"),
        }
    }
    let stored: BTreeSet<_> = written.iter().copied().collect();
    assert_eq!(stored.len(), written.len(), "written twice");
    assert_eq!(told, stored, "told and written differ");
    for sender in 0..SENDERS {
        let numbers = written.iter().filter(|request| request.0 == sender);
        assert!(numbers.is_sorted(), "order of a sender lost");
    }
}

fn scene(mistake: Mistake, stops_early: bool) {
    block_on(async move {
        let is_whole = mistake == Mistake::Unparted;
        let book = Arc::new(Book { is_whole, ..Book::default() });
        let stop = CancellationToken::new();
        let (writer, shards) = Batcher::with_shards(&book, CONFIG, &stop);
        let writer = Arc::new(writer);
        let mut running = Vec::new();
        for shard in shards {
            let stop = stop.clone();
            running.push(spawn(async move {
                match mistake {
                    Mistake::Abandoned => {
                        stop.run_until_cancelled(shard).await;
                    }
                    Mistake::None | Mistake::Scattered | Mistake::Unparted => shard.await,
                }
            }));
        }
        let senders: Vec<_> =
            (0..SENDERS).map(|sender| spawn(send(Arc::clone(&writer), sender, mistake))).collect();
        if stops_early {
            yield_now().await;
            stop.cancel();
        }
        let mut answers = Vec::new();
        for sender in senders {
            answers.extend(sender.await.expect("ran"));
        }
        stop.cancel();
        for shard in running {
            shard.await.expect("the shard ends");
        }
        let everybody = usize::try_from(SENDERS * EACH).expect("small");
        assert!(stops_early || answers.len() == everybody, "refused before the stop");
        check(&answers, &book.written());
    });
}

#[test]
fn every_request_is_answered_once_and_in_order() {
    holds("every_request_is_answered_once_and_in_order", SCHEDULES, || scene(Mistake::None, false));
}

#[test]
fn a_stop_among_submits_finishes_what_was_taken() {
    holds("a_stop_among_submits_finishes_what_was_taken", SCHEDULES, || scene(Mistake::None, true));
}

#[test]
fn every_broken_writer_is_caught() {
    is_caught("taken and abandoned", || scene(Mistake::Abandoned, true));
    is_caught("order of a sender lost", || scene(Mistake::Scattered, false));
    is_caught("a sound request suffered", || scene(Mistake::Unparted, false));
}
