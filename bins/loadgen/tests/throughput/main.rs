//! kefu through sockets, two gateways, beside the baselines of `quality.md` on the same servers (T1, T3,
//! T5). The suite runs a short form that only checks that nothing is lost; `cargo xtask show throughput`
//! sets `KEFU_THROUGHPUT_ROUNDS` and prints figures.

mod baseline;
mod cpu;
mod house;

use std::time::Duration;

use anyhow::{Result, ensure};
use loadgen::{Load, Pace, Report, run};

use crate::cpu::Cpu;
use crate::house::{House, SECRET};

/// Visitors who write.
const VISITORS: usize = 100;

/// The length of every measurement.
struct Plan {
    rounds: u32,
    visitors: usize,
    warm_up: Duration,
    measured: Duration,
}

impl Plan {
    fn read() -> Self {
        let rounds =
            std::env::var("KEFU_THROUGHPUT_ROUNDS").ok().and_then(|text| text.parse().ok());
        match rounds {
            Some(rounds) => Self {
                rounds,
                visitors: VISITORS,
                warm_up: Duration::from_secs(2),
                measured: Duration::from_secs(8),
            },
            None => Self {
                rounds: 1,
                visitors: 10,
                warm_up: Duration::from_millis(200),
                measured: Duration::from_millis(800),
            },
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_beside_the_baselines() -> Result<()> {
    let plan = Plan::read();
    let house = House::start().await?;
    let postmaster = house.postmaster()?;
    for round in 1..=plan.rounds {
        println!("round {round} of {}", plan.rounds);
        let commit = baseline::single_commit(&house.postgres, plan.measured).await?;
        println!("  D2 single-row commit: {commit}");
        let before = Cpu::now(postmaster);
        let literal = baseline::literal_design(&house.postgres, plan.measured).await?;
        let used = Cpu::now(postmaster).since(&before);
        println!("  D8 a transaction per message, 16 clients, no sockets: {literal}");
        let literal_per_cpu = literal.stored as f64 / (used.of("postgres") + used.client());
        println!("    {literal_per_cpu:.0} messages per CPU-second, its clients included");
        let before = Cpu::now(postmaster);
        let raw = baseline::raw_batches(&house.postgres, plan.measured).await?;
        let used = Cpu::now(postmaster).since(&before);
        let raw_per_cpu = raw.stored as f64 / (used.of("postgres") + used.client());
        println!("  D1 UNNEST of 64 rows into the same table, 2 clients: {raw}");
        println!("    {raw_per_cpu:.0} messages per CPU-second, its clients included");
        let wire = baseline::publish_to_subscriber(&house.redis, plan.measured / 4).await?;
        println!("  D3 publish to subscriber: {wire}");

        let before = Cpu::now(postmaster);
        let peak = load(&house, &plan, round, "peak", Pace::Window(4), None).await?;
        let used = Cpu::now(postmaster).since(&before);
        println!("  peak, two gateways: {peak}");
        let per_cpu = peak.acknowledged as f64 / used.servers();
        println!("    {per_cpu:.0} messages per CPU-second of the servers");
        let micros = |seconds: f64| seconds * 1e6 / peak.acknowledged as f64;
        println!(
            "    microseconds a message: gateways {:.0}, PostgreSQL {:.0}, Redis {:.0}, the load {:.0}",
            micros(used.of("gateway")),
            micros(used.of("postgres")),
            micros(used.of("redis-server")),
            micros(used.client())
        );
        println!(
            "  against D8: {:.1} x by the clock, {:.1} x by CPU; against D1: {:.2} x by CPU",
            peak.per_second() / literal.per_second(),
            per_cpu / literal_per_cpu,
            per_cpu / raw_per_cpu
        );
        let half = Pace::PerSecond((peak.per_second() / 2.0).max(1.0) as u32);
        let at_half = load(&house, &plan, round, "half", half, None).await?;
        println!("  half of it, open loop: {at_half}");
        let tenth = Pace::PerSecond((peak.per_second() / 10.0).max(1.0) as u32);
        let across = load(&house, &plan, round, "across", tenth, Some(1)).await?;
        println!("  a tenth of it, every message across nodes: {across}");
    }
    Ok(())
}

/// Runs one load and counts the rows it must have left.
async fn load(
    house: &House,
    plan: &Plan,
    round: u32,
    kind: &str,
    pace: Pace,
    agents_on: Option<usize>,
) -> Result<Report> {
    let name = format!("{kind}{round}");
    let load = Load {
        gateways: house.gateways.clone(),
        secret: SECRET.to_owned(),
        visitors: plan.visitors,
        pace,
        agents_on,
        warm_up: plan.warm_up,
        measured: plan.measured,
        name: name.clone(),
    };
    let report = run(&load).await?;
    let rows = house.count_messages(&name)?;
    ensure!(
        rows == report.acknowledged,
        "{name}: {} acknowledged, {rows} stored",
        report.acknowledged
    );
    ensure!(report.acknowledged > 0, "{name}: nothing was written");
    house.end_sessions(&name).await?;
    Ok(report)
}
