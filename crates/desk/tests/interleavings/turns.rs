//! The turn of the drain (Z3): at every use of flag and gate another caller may come in between.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool as Seen, AtomicUsize as Count};

use shuttle::future::{block_on, spawn, yield_now};

use crate::explore::{holds, is_caught};
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::turn::Turn;

const SCHEDULES: usize = 10_000;
const CALLERS: usize = 3;

/// Who waits; a pass serves those it saw when it began.
#[derive(Default)]
struct Line {
    waiting: Count,
    passing: Seen,
}

impl Line {
    async fn pass(&self) -> Result<usize, ()> {
        assert!(!self.passing.swap(true, Ordering::SeqCst), "two passes at once");
        let seen = self.waiting.load(Ordering::SeqCst);
        yield_now().await;
        self.waiting.fetch_sub(seen, Ordering::SeqCst);
        self.passing.store(false, Ordering::SeqCst);
        Ok(seen)
    }
}

trait Turns: Default + Send + Sync + 'static {
    fn take(&self, line: &Line) -> impl Future<Output = usize> + Send;
}

impl Turns for Turn {
    async fn take(&self, line: &Line) -> usize {
        self.run(|| line.pass()).await.expect("passed")
    }
}

/// Looks at the flag only while it holds the gate.
#[derive(Default)]
struct NotLookedAtAgain {
    gate: Mutex<()>,
    again: AtomicBool,
}

impl Turns for NotLookedAtAgain {
    async fn take(&self, line: &Line) -> usize {
        self.again.store(true, Ordering::SeqCst);
        let Ok(_pass) = self.gate.try_lock() else { return 0 };
        let mut done = 0;
        while self.again.swap(false, Ordering::SeqCst) {
            done += line.pass().await.expect("passed");
        }
        done
    }
}

/// Takes the flag down after the pass: also for those who came during it.
#[derive(Default)]
struct ClearedAfterThePass {
    gate: Mutex<()>,
    again: AtomicBool,
}

impl Turns for ClearedAfterThePass {
    async fn take(&self, line: &Line) -> usize {
        self.again.store(true, Ordering::SeqCst);
        let mut done = 0;
        while self.again.load(Ordering::SeqCst) {
            let Ok(_pass) = self.gate.try_lock() else { return done };
            done += line.pass().await.expect("passed");
            self.again.store(false, Ordering::SeqCst);
        }
        done
    }
}

/// Has the flag but no gate.
#[derive(Default)]
struct NoGate {
    again: AtomicBool,
}

impl Turns for NoGate {
    async fn take(&self, line: &Line) -> usize {
        self.again.store(true, Ordering::SeqCst);
        let mut done = 0;
        while self.again.swap(false, Ordering::SeqCst) {
            done += line.pass().await.expect("passed");
        }
        done
    }
}

fn scene<T: Turns>() {
    block_on(async {
        let (turns, line) = (Arc::new(T::default()), Arc::new(Line::default()));
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (turns, line) = (Arc::clone(&turns), Arc::clone(&line));
                spawn(async move {
                    line.waiting.fetch_add(1, Ordering::SeqCst);
                    turns.take(&line).await
                })
            })
            .collect();
        let mut served = 0;
        for caller in callers {
            served += caller.await.expect("ran");
        }
        assert_eq!(line.waiting.load(Ordering::SeqCst), 0, "somebody was forgotten");
        assert_eq!(served, CALLERS, "somebody was counted twice");
    });
}

#[test]
fn nobody_who_asks_for_a_pass_is_forgotten() {
    holds("nobody_who_asks_for_a_pass_is_forgotten", SCHEDULES, scene::<Turn>);
}

#[test]
fn every_broken_turn_is_caught() {
    is_caught("somebody was forgotten", scene::<NotLookedAtAgain>);
    is_caught("somebody was forgotten", scene::<ClearedAfterThePass>);
    is_caught("two passes at once", scene::<NoGate>);
}
