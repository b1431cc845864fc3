//! What an idle, authenticated connection costs: resident memory per connection (T6).
//!
//! The suite runs a short form; `cargo xtask show idle` sets `KEFU_IDLE_CONNECTIONS=10000`.

mod support;

use anyhow::{Context, Result, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use support::{Client, Server, ServerBuilder};

/// The target: 8 KiB (T6). The short form gives fixed costs no time to spread, hence its own bound.
const TARGET_KIB: f64 = 8.0;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_costs_little_memory() -> Result<()> {
    let wanted: u32 = std::env::var("KEFU_IDLE_CONNECTIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000);
    let server = ServerBuilder::default()
        .set("KEFU__LIMITS__CONNECTS_PER_MINUTE", 1_000_000)
        .start()
        .await?;
    // The first connections pay for what all share.
    let warm = connect(&server, 0..200).await?;
    let before = resident_kib(&server)?;
    let clients = connect(&server, 200..200 + wanted).await?;
    let after = resident_kib(&server)?;
    let each = (after - before) as f64 / f64::from(wanted);
    println!(
        "idle: {wanted} connections, {before} KiB before, {after} KiB after, {each:.2} KiB each"
    );
    let bound = if wanted >= 10_000 { TARGET_KIB } else { 2.0 * TARGET_KIB };
    ensure!(each <= bound, "{each:.2} KiB per idle connection, at most {bound} (T6)");
    drop((warm, clients));
    Ok(())
}

async fn connect(server: &Server, numbers: std::ops::Range<u32>) -> Result<Vec<Client>> {
    stream::iter(numbers)
        .map(|n| async move {
            let token = server.user(&format!("idle-{n}"));
            let payload = json!({"token": token, "source": "test", "intent": "resume"});
            Ok(Client::connect(server, payload).await?.0)
        })
        .buffer_unordered(32)
        .try_collect()
        .await
}

fn resident_kib(server: &Server) -> Result<i64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("a number")?.parse()?)
}
