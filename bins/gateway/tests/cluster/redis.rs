//! Redis emptied and Redis killed while people talk: nothing of what they say depends on it (N5, A1).
//!
//! `cargo xtask show cluster-redis` sets `KEFU_OUTAGE_SECONDS=30` and `KEFU_OPEN_SESSIONS=10000`.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;

use crate::copies::{exact_at, rows_hold, until_exact};
use crate::load::Load;
use crate::support::{ClusterHouse, HouseBuilder, setting, until};

const MEANWHILE: u64 = 200;
const PAIRS: usize = 8;

/// Open sessions of people who are not here: half waiting, half with agents, ten each.
fn fill(house: &ClusterHouse, sessions: u64) {
    house.execute(&format!(
        "INSERT INTO cg_chat_agent (admin_id, name, availability, max_sessions, active_sessions, \
         live, live_gen, version) \
         SELECT 'away-' || n, 'away', 'offline', 10, 10, false, 0, 1 \
         FROM generate_series(1, {sessions} / 20) AS n; \
         INSERT INTO cg_chat_session (id, user_id, user_name, status, admin_id, source, priority, \
         last_seq, version, started_at, queued_at) \
         SELECT n, 'away-' || n, 'away', CASE WHEN n % 2 = 0 THEN 1 ELSE 0 END, \
         CASE WHEN n % 2 = 0 THEN 'away-' || (1 + (n / 2 - 1) / 10) END, 'test', 0, 0, 1, 1, 1 \
         FROM generate_series(1, {sessions}) AS n"
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_and_a_killed_redis_stop_nobody_and_come_back_exact() -> Result<()> {
    let outage = Duration::from_secs(setting("KEFU_OUTAGE_SECONDS", 3));
    let sessions = setting("KEFU_OPEN_SESSIONS", 200);
    let mut house = HouseBuilder::of(2, 2).without_limits().start().await?;
    let load = Load::start(&house, PAIRS).await?;
    fill(&house, sessions);
    load.acked(MEANWHILE).await?;

    until_exact(&house).await?;

    house.redis.flush();
    let begin = Instant::now();
    let took = exact_at(&house).await? - begin;
    println!("redis: {sessions} sessions exact {:.2} s after FLUSHALL", took.as_secs_f64());
    load.acked(MEANWHILE).await?;

    house.redis.kill();
    let begin = Instant::now();
    until("/readyz says redis", async || Ok(house.missing(0).await?.as_deref() == Some("redis")))
        .await?;
    let before = load.progress();
    load.acked(MEANWHILE).await?;
    // tidy: how long it is away is what is tested.
    tokio::time::sleep(outage.saturating_sub(begin.elapsed())).await;
    let after = load.progress();
    let acked = after.acked - before.acked;
    println!("redis: away for {:.1} s, {acked} acks meanwhile", seconds(begin));
    ensure!(after.unavailable == 0, "a send was refused: {after:?}");
    house.redis.restart();
    let begin = Instant::now();
    let took = exact_at(&house).await? - begin;
    println!("redis: {sessions} sessions exact {:.2} s after its return", took.as_secs_f64());
    for gateway in 0..house.gateways.len() {
        until("ready again", async || Ok(house.missing(gateway).await?.is_none())).await?;
    }
    load.acked(MEANWHILE).await?;
    load.finish(&house).await?;
    rows_hold(&house)?;
    until_exact(&house).await
}

fn seconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64()
}
