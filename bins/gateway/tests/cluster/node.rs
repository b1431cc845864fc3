//! Gateways that die, join and leave while people talk.
//!
//! `cargo xtask show cluster-kill` sets `KEFU_CLUSTER_ROUNDS=20` and `KEFU_CLUSTER_PAIRS=30`.

use anyhow::{Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::copies::{rows_hold, until_exact};
use crate::load::Load;
use crate::support::{ClusterHouse, HouseBuilder, setting, until};

/// Acks between two events, so that every event meets a running conversation.
const MEANWHILE: u64 = 200;

/// Nothing that a lost node committed stays unsaid: the relay takes it over (N2).
async fn until_said(house: &ClusterHouse) -> Result<()> {
    let unsaid = "SELECT count(*) FROM cg_chat_outbox WHERE confirmed_at IS NULL";
    until("the outbox is confirmed", async || Ok(house.count(unsaid)? == 0)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_gateways_lose_double_and_conceal_nothing() -> Result<()> {
    let rounds = setting("KEFU_CLUSTER_ROUNDS", 2);
    let pairs = setting("KEFU_CLUSTER_PAIRS", 8);
    let seed = setting("KEFU_SEED", rand::random());
    println!("cluster kill: {rounds} rounds, {pairs} pairs, KEFU_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut house = HouseBuilder::of(3, 2).without_limits().start().await?;
    let load = Load::start(&house, usize::try_from(pairs)?).await?;
    for _ in 0..rounds {
        load.acked(random.random_range(MEANWHILE / 4..MEANWHILE)).await?;
        let victim = random.random_range(0..house.gateways.len());
        house.kill_and_restart(victim).await?;
    }
    load.acked(MEANWHILE).await?;
    load.finish(&house).await?;
    until_said(&house).await?;
    rows_hold(&house)?;
    until_exact(&house).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_joins_and_another_leaves_and_nobody_loses_anything() -> Result<()> {
    let pairs = setting("KEFU_CLUSTER_PAIRS", 8);
    let mut house = HouseBuilder::of(2, 1).without_limits().start().await?;
    let load = Load::start(&house, usize::try_from(pairs)?).await?;
    load.acked(MEANWHILE).await?;
    house.join().await?;
    load.moved(&house)?;
    load.acked(MEANWHILE).await?;
    let leaving = house.gateways.remove(0);
    load.moved(&house)?;
    let (took, well) = leaving.terminate().await?;
    println!("cluster leave: it took {:.1} s", took.as_secs_f64());
    ensure!(well, "it ended with an error (L3)");
    load.acked(MEANWHILE).await?;
    let report = load.finish(&house).await?;
    ensure!(report.breaks > 0, "nobody was connected to the one that left");
    until_said(&house).await?;
    rows_hold(&house)?;
    until_exact(&house).await
}
