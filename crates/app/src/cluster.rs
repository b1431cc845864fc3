//! The cluster profile: PostgreSQL and Redis behind the ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use kefu_core::{Clock, NodeName, SnowflakeIds};
use kefu_desk::Cluster;
use kefu_gateway::Readiness;
use kefu_postgres::{OpenError, PgOptions, PgStore};
use kefu_redis::{RedisCoordination, RedisOptions};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::ground::{Ground, Storage};
use crate::readiness::StoreReadiness;

/// How long a worker id stays with a process that says nothing (T3).
const WORKER_TTL: Duration = Duration::from_secs(60);
/// Between two comparisons of this machine's clock with the database's (T3).
const CLOCK_EVERY: Duration = Duration::from_secs(60);
/// Milliseconds that the two may differ (T3).
const CLOCK_TOLERANCE: i64 = 5_000;

/// Connects to PostgreSQL, which must be there and migrated, and to Redis, which may be away (N5).
pub(crate) async fn open(
    config: &Config,
    node: &NodeName,
    clock: &Arc<dyn Clock>,
) -> Result<Ground> {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let store = connect(config).await?;
    let offset = store.clock_offset(clock.as_ref()).await.context("cannot read the database")?;
    ensure!(
        offset.abs() <= CLOCK_TOLERANCE,
        "the clocks of this machine and of the database differ by {offset} ms; set them right"
    );
    let stores = store.stores();
    let lease = store.lease_worker(node, WORKER_TTL).await.context("cannot lease a worker id")?;
    let highest = stores.messages.highest_id().await.context("cannot read the database")?;
    let worker = lease.worker().context("the worker id was lost at once")?;
    let ids = Arc::new(SnowflakeIds::new(Arc::clone(clock), worker, highest));
    tasks.spawn(lease.keep(Arc::clone(&ids), stop.clone()));
    let redis = redis(config, node, &tasks, &stop).await?;
    let clocks =
        Arc::new(Clocks { store: store.clone(), clock: Arc::clone(clock), agree: true.into() });
    tasks.spawn(Arc::clone(&clocks).watch(stop.clone()));
    let ready = ClusterReadiness {
        store: StoreReadiness { messages: Arc::clone(&stores.messages) },
        clocks,
        redis: redis.clone(),
    };
    let cluster = Cluster { nodes: redis.nodes(), board: redis.board(), tasks: store.tasks() };
    Ok(Ground {
        stores,
        coordination: redis.ports(),
        cluster: Some(cluster),
        ids,
        ready: Arc::new(ready),
        storage: Storage::Cluster { store, tasks, stop },
    })
}

/// Brings the database to this build's schema.
pub(crate) async fn migrate(config: &Config) -> Result<()> {
    let url = config.postgres.url.as_ref().context("postgres.url is not set")?;
    Ok(PgStore::migrate(url.reveal()).await?)
}

async fn connect(config: &Config) -> Result<PgStore> {
    let url = config.postgres.url.as_ref().context("postgres.url is not set")?;
    let options = PgOptions {
        max_connections: config.postgres.max_connections,
        statement_cache: config.postgres.statement_cache,
        ..PgOptions::default()
    };
    match PgStore::connect(url.reveal(), options).await {
        Ok(store) => Ok(store),
        Err(error @ OpenError::Pending(_)) => bail!("{error}; run: gateway migrate"),
        Err(error) => Err(error).context("postgres.url"),
    }
}

async fn redis(
    config: &Config,
    node: &NodeName,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<RedisCoordination> {
    let url = config.redis.url.as_ref().context("redis.url is not set")?;
    let options = RedisOptions {
        key_prefix: config.redis.key_prefix.clone(),
        ..RedisOptions::new(url.reveal(), node.clone())
    };
    Ok(RedisCoordination::connect(options, tasks, stop.clone()).await?)
}

/// Whether this machine's clock is near enough to the database's (T3).
struct Clocks {
    store: PgStore,
    clock: Arc<dyn Clock>,
    agree: AtomicBool,
}

impl Clocks {
    async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(CLOCK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            // Without an answer the last one holds; that the database is away shows elsewhere.
            if let Ok(offset) = self.store.clock_offset(self.clock.as_ref()).await {
                let agree = offset.abs() <= CLOCK_TOLERANCE;
                self.agree.store(agree, Ordering::Relaxed);
                if !agree {
                    tracing::error!(
                        offset,
                        "the clocks of this machine and of the database differ"
                    );
                }
            }
        }
    }
}

/// PostgreSQL, Redis, and the time.
struct ClusterReadiness {
    store: StoreReadiness,
    clocks: Arc<Clocks>,
    redis: RedisCoordination,
}

#[async_trait]
impl Readiness for ClusterReadiness {
    async fn check(&self) -> Result<(), &'static str> {
        self.store.check().await?;
        if !self.clocks.agree.load(Ordering::Relaxed) {
            return Err("clock");
        }
        if !self.redis.is_connected() {
            return Err("redis");
        }
        Ok(())
    }
}
