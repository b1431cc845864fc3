//! One connection, kept up for as long as the node runs, that knows when it is down.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fred::prelude::{Client, ClientLike, Error, ErrorKind, EventInterface};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connect::UNRESPONSIVE;

/// How often a connection is asked for a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long closing may take before the connection is just dropped.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Before a client that gave up is started again.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// A client and whether it is up.
///
/// The library says "connected" until its first attempt to reconnect, which is later than the loss;
/// what is asked in between waits for the time limit. Its errors tell at once.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Client,
    is_up: Arc<AtomicBool>,
}

impl Connection {
    /// Connects `client` and keeps it connected until `stop`. `role` names it in logs and metrics.
    pub(crate) fn keep(
        role: &'static str,
        client: Client,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let kept = Self { client, is_up: Arc::new(AtomicBool::new(false)) };
        let connection = kept.clone();
        tracker.spawn(async move {
            let client = &connection.client;
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection.watch(role) => {}
                () = drive(role, client) => {}
                () = connection.keep_asking(role) => {}
            }
            let _ = timeout(CLOSE_LIMIT, client.quit()).await;
        });
        kept
    }

    /// The client, if it is of use now. Without a connection a command fails at once instead of
    /// waiting for the time limit: whoever waits holds up a visitor (N5).
    pub(crate) fn client(&self) -> Result<&Client, Error> {
        if self.is_up() {
            return Ok(&self.client);
        }
        Err(Error::new(ErrorKind::IO, "not connected"))
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Acquire) && self.client.is_connected()
    }

    /// Waits until the server answers; commands sent before there is a connection wait for it.
    pub(crate) async fn wait_for_answer(&self) -> Result<(), Error> {
        self.client.ping::<String>(None).await?;
        self.is_up.store(true, Ordering::Release);
        Ok(())
    }

    async fn watch(&self, role: &'static str) {
        let (mut errors, mut connects) = (self.client.error_rx(), self.client.reconnect_rx());
        let mut was_connected = false;
        loop {
            tokio::select! {
                // A loss first: that a connection stands is also told by its next sign of life.
                biased;
                error = errors.recv() => match error {
                    Ok((error, _)) => self.lost(role, &error),
                    Err(RecvError::Lagged(_)) => self.is_up.store(false, Ordering::Release),
                    Err(RecvError::Closed) => return std::future::pending().await,
                },
                connect = connects.recv() => {
                    if matches!(connect, Err(RecvError::Closed)) {
                        return std::future::pending().await;
                    }
                    self.is_up.store(true, Ordering::Release);
                    tracing::info!(role, "redis is there");
                    if std::mem::replace(&mut was_connected, true) {
                        let name = "kefu_redis_reconnects_total";
                        metrics::counter!(name, "role" => role).increment(1);
                    }
                }
            }
        }
    }

    fn lost(&self, role: &'static str, error: &Error) {
        if self.is_up.swap(false, Ordering::AcqRel) {
            tracing::warn!(role, %error, "redis is lost");
        } else {
            tracing::debug!(role, %error, "redis is away");
        }
    }

    /// Gives a connection up on which nothing was answered for too long. The library looks only at
    /// the time since it last *wrote*, so under steady traffic it would wait for TCP, for minutes; and
    /// on a subscribed connection nobody would write at all.
    async fn keep_asking(&self, role: &'static str) {
        let mut answered = Instant::now();
        loop {
            sleep(HEARTBEAT).await;
            if !self.client.is_connected() {
                answered = Instant::now();
                continue;
            }
            if self.wait_for_answer().await.is_ok() {
                answered = Instant::now();
            } else if answered.elapsed() >= UNRESPONSIVE {
                self.is_up.store(false, Ordering::Release);
                tracing::warn!(role, "redis does not answer, connecting anew");
                let _ = timeout(CLOSE_LIMIT, self.client.force_reconnection()).await;
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("is_up", &self.is_up).finish_non_exhaustive()
    }
}

/// Drives a client. One that gives up by itself (a queue so full that the order to reconnect found no
/// room, a server that was no cluster for a moment) is started again.
async fn drive(role: &'static str, client: &Client) {
    loop {
        let end = client.connect().await;
        let error = end.map(Result::err).unwrap_or_default();
        tracing::error!(role, ?error, "redis client gave up, starting it again");
        sleep(RESTART_PAUSE).await;
    }
}
