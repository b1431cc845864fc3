//! Where leases are kept: never in SQL (A1).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{ManualClock, NodeName};
use kefu_desk::Coordination;
use kefu_memory::MemoryCoordination;
use kefu_redis::{RedisCoordination, RedisOptions};
use kefu_testkit::CoordinationHarness;
use kefu_testkit::server::{self, redis};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// A backend of leases under test.
#[async_trait]
pub trait LeaseBackend: CoordinationHarness {
    /// How many generated cases a property gets.
    const CASES: u32;
    /// How near to the end of a life one can look: nothing where time stands still between two looks.
    const MARGIN: Duration;

    /// Steps the wall clock of this process.
    fn step_wall(&self, by_ms: i64);
}

/// In this process, by a clock that stands still until it is moved.
#[derive(Debug)]
pub struct MemoryLeases {
    clock: Arc<ManualClock>,
    coordination: MemoryCoordination,
}

impl MemoryLeases {
    /// That clock.
    #[must_use]
    pub const fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }
}

#[async_trait]
impl CoordinationHarness for MemoryLeases {
    async fn start() -> Self {
        let clock = Arc::new(ManualClock::default());
        let coordination = MemoryCoordination::new(Arc::clone(&clock) as _);
        Self { clock, coordination }
    }

    fn coordination(&self) -> Coordination {
        self.coordination.ports()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

#[async_trait]
impl LeaseBackend for MemoryLeases {
    const CASES: u32 = 256;
    const MARGIN: Duration = Duration::ZERO;

    fn step_wall(&self, by_ms: i64) {
        self.clock.step_wall(by_ms);
    }
}

/// Under a prefix of the Redis that this process shares, whose own clock goes on all the time.
#[derive(Debug)]
pub struct RedisLeases {
    coordination: RedisCoordination,
    prefix: String,
    /// Up to when time that really passed is counted.
    counted: Mutex<Instant>,
    _stop: DropGuard,
}

/// A key prefix that nothing else has.
pub(crate) fn prefix() -> String {
    format!("cs-{:016x}", rand::random::<u64>())
}

/// One node's coordination, so patient that a busy machine fails no property.
pub(crate) async fn connect(prefix: &str, node: NodeName) -> (RedisCoordination, DropGuard) {
    let url = tokio::task::spawn_blocking(redis::shared).await.expect("a server");
    let options = RedisOptions {
        key_prefix: prefix.to_owned(),
        command_timeout: Duration::from_secs(30),
        ..RedisOptions::new(url, node)
    };
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let connected = RedisCoordination::connect(options, &tracker, stop.clone());
    (connected.await.expect("settings that work"), stop.drop_guard())
}

#[async_trait]
impl CoordinationHarness for RedisLeases {
    async fn start() -> Self {
        let prefix = prefix();
        let (coordination, stop) = connect(&prefix, NodeName::new("n1").expect("valid")).await;
        Self { coordination, prefix, counted: Mutex::new(Instant::now()), _stop: stop }
    }

    fn coordination(&self) -> Coordination {
        self.coordination.ports()
    }

    /// What really passed since the last time is part of it, so that errors do not add up.
    async fn advance(&self, by: Duration) {
        let mut counted = self.counted.lock().await;
        let now = Instant::now();
        let really = now.duration_since(*counted);
        if let Some(missing) = by.checked_sub(really) {
            *counted = now;
            server::pass(&redis::shared(), &self.prefix, missing);
        } else {
            *counted += by;
        }
    }
}

#[async_trait]
impl LeaseBackend for RedisLeases {
    const CASES: u32 = 12;
    const MARGIN: Duration = Duration::from_secs(2);

    /// Its lives follow its own clock, which is the only one.
    fn step_wall(&self, _: i64) {}
}
