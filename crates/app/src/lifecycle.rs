//! The orderly end of a process (L3).

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::house::House;

/// Between two connections that are asked to go, so that they do not all come back at once.
const PER_CONNECTION: Duration = Duration::from_millis(1);

/// SIGTERM and SIGINT, which mean the same here.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ends the house within `grace`, in the order in which its parts need each other: nothing new, what
/// is being written, the connections with their leases, the desk's writers, the database.
///
/// Each step has its latest end, so that a stuck one leaves time to those after it.
pub(crate) async fn shut_down<T>(house: House, mut http: JoinHandle<T>, grace: Duration) {
    let begin = Instant::now();
    tracing::info!(connections = house.registry.len(), "shutting down");
    house.closing.cancel();
    if !http.is_finished() && timeout(grace / 2, &mut http).await.is_err() {
        tracing::warn!("requests are cut off, they took too long");
        http.abort();
    }
    close_connections(&house, grace / 4).await;
    house.requests.close();
    if timeout_at(begin + grace * 7 / 8, house.requests.wait()).await.is_err() {
        tracing::warn!(tasks = house.requests.len(), "connections are cut off");
    }
    // Only now: a send that was taken in is answered after its commit, by a writer of the desk.
    house.stop.cancel();
    house.desk_tasks.close();
    let end = begin + grace;
    if timeout_at(end, house.desk_tasks.wait()).await.is_err() {
        tracing::warn!(tasks = house.desk_tasks.len(), "the desk did not finish in time");
    }
    if timeout_at(end, house.storage.close()).await.is_err() {
        tracing::warn!("the database did not close in time");
    }
    tracing::info!("stopped");
}

/// Spread over at most `longest`; who was not asked by then is asked at once.
async fn close_connections(house: &House, longest: Duration) {
    let count = u32::try_from(house.registry.len()).unwrap_or(u32::MAX);
    let spread = PER_CONNECTION.saturating_mul(count).min(longest);
    if timeout(longest, house.registry.close_all(spread)).await.is_err() {
        house.registry.close_all(Duration::ZERO).await;
    }
}
