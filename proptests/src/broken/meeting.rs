//! Makes a race certain: nobody goes on before two have read.

use tokio::sync::watch;

/// Where those meet who decide outside the lock.
#[derive(Debug, Default)]
pub(crate) struct Meeting(watch::Sender<usize>);

impl Meeting {
    /// Comes, and waits for a second one.
    pub(crate) async fn meet(&self) {
        let mut arrived = self.0.subscribe();
        self.0.send_modify(|count| *count += 1);
        // The sender lives in `self`, so the wait ends only by the condition.
        let _ = arrived.wait_for(|count| *count >= 2).await;
    }
}
