//! Places for tests, nodes in them, and time that a test can let pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fred::prelude::{Builder, Client, ClientLike, Config};
use kefu_core::NodeName;
use kefu_redis::{RedisCoordination, RedisOptions};
use kefu_testkit::server::{self, redis};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The servers that all tests share.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// One server.
    Plain,
    /// A node of a Redis Cluster with every slot: keys need a hash tag.
    Clustered,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Plain, Self::Clustered];
}

/// A server and a key prefix that no other test has.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// As kefu reaches it.
    pub(crate) url: String,
    pub(crate) prefix: String,
}

impl Place {
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Plain => Self { url: redis::shared(), prefix: unique() },
            Kind::Clustered => Self {
                url: redis::shared_slots().replace("redis://", "redis-cluster://"),
                prefix: format!("{{{}}}", unique()),
            },
        }
    }

    /// A client that sees every key, and what is said.
    pub(crate) async fn admin(&self) -> Client {
        let plain = self.url.replace("redis-cluster://", "redis://");
        let client = Builder::from_config(Config::from_url(&plain).unwrap()).build().unwrap();
        client.init().await.unwrap();
        client
    }

    pub(crate) fn key(&self, rest: &str) -> String {
        format!("{}:{rest}", self.prefix)
    }
}

fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("cs-{:016x}-{number}", rand::random::<u64>())
}

/// One node at a place; it closes when dropped.
pub(crate) struct Node {
    pub(crate) coordination: RedisCoordination,
    place: Place,
    _stop: DropGuard,
}

impl Node {
    pub(crate) async fn start(place: &Place, name: &str) -> Self {
        Self::connect(place, RedisOptions::new(&place.url, NodeName::new(name).unwrap())).await
    }

    /// One so patient that a busy machine fails no test that is not about patience: above all, it has
    /// subscribed when it says so.
    pub(crate) async fn start_patient(place: &Place, name: &str) -> Self {
        let command_timeout = Duration::from_secs(30);
        let options = RedisOptions::new(&place.url, NodeName::new(name).unwrap());
        Self::connect(place, RedisOptions { command_timeout, ..options }).await
    }

    async fn connect(place: &Place, options: RedisOptions) -> Self {
        let stop = CancellationToken::new();
        let options = RedisOptions { key_prefix: place.prefix.clone(), ..options };
        let tracker = TaskTracker::new();
        let connected = RedisCoordination::connect(options, &tracker, stop.clone());
        Self {
            coordination: connected.await.unwrap(),
            place: place.clone(),
            _stop: stop.drop_guard(),
        }
    }

    /// Lets `by` pass for everything under the prefix.
    pub(crate) fn pass(&self, by: Duration) {
        server::pass(&self.place.url, &self.place.prefix, by);
    }
}

/// Waits until `is_so`, which tells nobody when it becomes so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            // tidy: between two looks at the condition.
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(30), wait).await.is_ok(), "never came: {what}");
}
