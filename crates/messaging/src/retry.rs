//! The clockwork of push retries (CC-06, M3): what is due when, and nothing else.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt;
use kefu_core::MsgId;
use tokio::sync::mpsc;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

/// Pushes that wait for an acknowledgement, on this node.
const QUEUE: usize = 16_384;

/// When an unacknowledged message is pushed again, and when it counts as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySchedule {
    delays: Vec<Duration>,
}

impl RetrySchedule {
    /// Pauses between pushes; the last one is also the wait before `failed`.
    #[must_use]
    pub const fn new(delays: Vec<Duration>) -> Self {
        Self { delays }
    }

    /// How long to wait after the `attempt`-th push (from 1). With 1 s, 2 s, 4 s: pushes at 0, 1, 3
    /// and 7 s, failed at 11 s.
    #[must_use]
    pub fn after_push(&self, attempt: u32) -> Duration {
        let index = (attempt.saturating_sub(1)) as usize;
        self.delays.get(index).or_else(|| self.delays.last()).copied().unwrap_or_default()
    }

    /// Whether the `attempt`-th push was the last.
    #[must_use]
    pub fn is_last(&self, attempt: u32) -> bool {
        attempt as usize > self.delays.len()
    }
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self::new(kefu_core::limit::PUSH_RETRIES.to_vec())
    }
}

/// A message whose acknowledgement did not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) msg_id: MsgId,
    /// Pushes so far.
    pub(crate) attempt: u32,
}

#[derive(Debug, Clone, Copy)]
enum Command {
    Track { due: Due, wait: Duration },
    Settle(MsgId),
}

/// Tells the clockwork what was pushed and what was acknowledged.
#[derive(Clone)]
pub(crate) struct RetryHandle {
    commands: mpsc::Sender<Command>,
}

impl RetryHandle {
    pub(crate) fn channel() -> (Self, RetryClock) {
        let (commands, receiver) = mpsc::channel(QUEUE);
        (
            Self { commands },
            RetryClock { commands: receiver, queue: DelayQueue::new(), keys: HashMap::new() },
        )
    }

    /// A push went out. Under overload the message is not tracked: it stays `pending` and comes with
    /// the receiver's next connect.
    pub(crate) fn track(&self, due: Due, wait: Duration) {
        if self.commands.try_send(Command::Track { due, wait }).is_err() {
            metrics::counter!("kefu_retry_untracked_total").increment(1);
        }
    }

    /// An acknowledgement was committed. Should the word be lost, the retry reads the status first.
    pub(crate) fn settle(&self, msg_id: MsgId) {
        let _ = self.commands.try_send(Command::Settle(msg_id));
    }
}

/// Waits for commands and deadlines.
pub(crate) struct RetryClock {
    commands: mpsc::Receiver<Command>,
    queue: DelayQueue<Due>,
    keys: HashMap<MsgId, Key>,
}

impl RetryClock {
    /// The next message that is due; `None` once every handle is gone.
    pub(crate) async fn next(&mut self) -> Option<Due> {
        loop {
            tokio::select! {
                biased;
                command = self.commands.recv() => self.obey(command?),
                Some(expired) = self.queue.next() => {
                    let due = expired.into_inner();
                    self.keys.remove(&due.msg_id);
                    return Some(due);
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Track { due, wait } => {
                self.forget(due.msg_id);
                let key = self.queue.insert(due, wait);
                self.keys.insert(due.msg_id, key);
            }
            Command::Settle(msg_id) => self.forget(msg_id),
        }
    }

    fn forget(&mut self, msg_id: MsgId) {
        if let Some(key) = self.keys.remove(&msg_id) {
            self.queue.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_at_0_1_3_7_and_failed_at_11() {
        let schedule = RetrySchedule::default();
        let waits: Vec<_> = (1..=4).map(|n| schedule.after_push(n).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 4]);
        assert!(!schedule.is_last(3));
        assert!(schedule.is_last(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_settled_message_never_comes_due() {
        let (handle, mut clock) = RetryHandle::channel();
        let due = |raw| Due { msg_id: MsgId::new(raw).expect("positive"), attempt: 1 };
        handle.track(due(1), Duration::from_secs(1));
        handle.track(due(2), Duration::from_secs(2));
        handle.settle(due(1).msg_id);
        assert_eq!(clock.next().await, Some(due(2)));
    }
}
