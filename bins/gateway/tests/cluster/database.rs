//! PostgreSQL stopped and crashed while people talk: nothing is acknowledged that is not stored, and
//! everything goes on by itself when it is back (N5).
//!
//! `cargo xtask show cluster-postgres` sets `KEFU_OUTAGE_SECONDS=10`.

use std::time::Duration;

use anyhow::Result;

use crate::copies::{rows_hold, until_exact};
use crate::load::Load;
use crate::support::{HouseBuilder, setting, until};

const MEANWHILE: u64 = 200;
const PAIRS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_and_a_crashed_database_lose_nothing_acked_and_heal() -> Result<()> {
    let outage = Duration::from_secs(setting("KEFU_OUTAGE_SECONDS", 2));
    let house = HouseBuilder::of(2, 1).with_own_postgres().without_limits().start().await?;
    let load = Load::start(&house, PAIRS).await?;
    for crash in [false, true] {
        load.acked(MEANWHILE).await?;
        match crash {
            true => house.postgres.crash(),
            false => house.postgres.stop(),
        }
        let before = load.progress();
        load.refused(1).await?;
        until("/readyz says store", async || {
            Ok(house.missing(0).await?.as_deref() == Some("store"))
        })
        .await?;
        // tidy: how long it is away is what is tested.
        tokio::time::sleep(outage).await;
        let after = load.progress();
        let unavailable = after.unavailable - before.unavailable;
        house.postgres.resume();
        load.acked(MEANWHILE).await?;
        println!("postgres: away for {outage:?} (crash: {crash}), {unavailable} sends refused");
        for gateway in 0..house.gateways.len() {
            until("ready again", async || Ok(house.missing(gateway).await?.is_none())).await?;
        }
    }
    load.finish(&house).await?;
    rows_hold(&house)?;
    until_exact(&house).await
}
