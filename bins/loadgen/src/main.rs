//! The `loadgen` binary: parses arguments, runs the load, prints the report.
#![expect(clippy::print_stdout, reason = "a command line tool; what it prints is its result")]

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use loadgen::{Load, Pace, run};

/// Lets visitors and agents chat through running gateways and reports how that went.
#[derive(Parser)]
#[command(name = "loadgen", version)]
struct Cli {
    /// Address of a gateway; may be repeated.
    #[arg(long = "gateway", required = true, value_name = "ADDRESS")]
    gateways: Vec<SocketAddr>,
    /// The secret that signs the installation's tokens (`auth.secret`).
    #[arg(long, env = "KEFU__AUTH__SECRET", hide_env_values = true)]
    secret: String,
    /// Visitors who write; every ten of them have one agent.
    #[arg(long, default_value_t = 100)]
    visitors: usize,
    /// Messages per second of all visitors together; without it as many as the server takes.
    #[arg(long)]
    per_second: Option<u32>,
    /// Messages that each visitor keeps under way when there is no rate.
    #[arg(long, default_value_t = 4)]
    window: usize,
    /// Puts every agent on this gateway, counted from 0, and the visitors on the others.
    #[arg(long)]
    agents_on: Option<usize>,
    /// Seconds that count, after the warm-up.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before them that do not.
    #[arg(long, default_value_t = 2)]
    warm_up: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let pace = match cli.per_second {
        Some(per_second) => Pace::PerSecond(per_second),
        None => Pace::Window(cli.window),
    };
    let load = Load {
        gateways: cli.gateways,
        secret: cli.secret,
        visitors: cli.visitors,
        pace,
        agents_on: cli.agents_on,
        warm_up: Duration::from_secs(cli.warm_up),
        measured: Duration::from_secs(cli.seconds),
        // People of an earlier run may still have open sessions.
        name: format!("load{}", std::process::id()),
    };
    println!("{}", run(&load).await?);
    Ok(())
}
