//! `cargo xtask …`: the commands of this repository. The justfile and `.ci/run` call these, so that
//! there is one place that knows how something is run.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool; what it prints is its result"
)]

mod cargo;
mod dev;
mod prerequisite;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::cargo::{Cargo, Elapsed};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The commands of this repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what is missing, compile, then run every test of the workspace.
    Test(TestArgs),
    /// Run one of the long demonstrations, in release mode.
    #[command(subcommand)]
    Show(Demonstration),
    /// Run a whole cluster on this machine until Ctrl-C: throw-away PostgreSQL and Redis, two
    /// gateways, a queue drainer, and a reverse proxy before the gateways.
    Dev(DevArgs),
    /// Regenerate docs/protocol.schema.json from the wire types.
    Schema,
    /// Check the repository rules (arrows between crates, sources, documents).
    Tidy,
}

#[derive(Args)]
struct TestArgs {
    /// Arguments for `cargo test`, such as a filter or `--test NAME`; after `--` those for the test
    /// binaries, such as `--nocapture`.
    #[arg(allow_hyphen_values = true, value_name = "ARG")]
    cargo: Vec<String>,
}

#[derive(Args)]
struct DevArgs {
    /// Where the reverse proxy listens on loopback. Not given: 8080, or a free one if that is taken.
    #[arg(long)]
    port: Option<u16>,
    /// A folder with `gateway` and `queue-drainer` to run, instead of building them.
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Demonstration {
    /// Kill the gateway at random moments under chatting pairs, then compare every client's
    /// acknowledgements with the tables.
    Kill {
        /// How often the gateway is killed.
        #[arg(long, default_value_t = 20)]
        rounds: u32,
        /// How many visitor and agent pairs chat meanwhile.
        #[arg(long, default_value_t = 50)]
        pairs: u32,
    },
    /// Give 100 visitors at once to 10 agents through three gateways, round after round.
    Spread {
        /// How often.
        #[arg(long, default_value_t = 50)]
        rounds: u32,
    },
    /// Let assignments, claims, transfers and ends race over three gateways and two drainers, then
    /// compare loads, caps, sessions and Redis' copies.
    Race {
        /// How many requests are made.
        #[arg(long, default_value_t = 100_000)]
        requests: u32,
    },
    /// Kill gateways of a cluster at random moments under chatting pairs, and let one join and one
    /// leave.
    ClusterKill {
        /// How often a gateway is killed.
        #[arg(long, default_value_t = 20)]
        rounds: u32,
        /// How many visitor and agent pairs chat meanwhile.
        #[arg(long, default_value_t = 30)]
        pairs: u32,
    },
    /// Empty Redis and kill it under chatting pairs; measures how soon its copies are exact again.
    ClusterRedis {
        /// How long it is away.
        #[arg(long, default_value_t = 30)]
        seconds: u32,
        /// How many sessions are open.
        #[arg(long, default_value_t = 10_000)]
        sessions: u32,
    },
    /// Stop and crash PostgreSQL under chatting pairs.
    ClusterPostgres {
        /// How long it is away each time.
        #[arg(long, default_value_t = 10)]
        seconds: u32,
    },
    /// Freeze a gateway under chatting pairs for longer than all of its leases.
    ClusterFreeze {
        /// How long it is frozen; above 75 another gateway has its worker id by then.
        #[arg(long, default_value_t = 90)]
        seconds: u32,
    },
    /// Measure two gateways through sockets beside the baselines, on the same servers.
    Throughput {
        /// How often everything is measured, in turn.
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
    /// Hold idle authenticated connections and measure the memory of each.
    Idle {
        /// How many connections are held.
        #[arg(long, default_value_t = 10_000)]
        connections: u32,
    },
    /// Send heartbeats and keep silent, in real time: 59 s after one a connection is there, 61 s after
    /// it is gone. Takes a minute and a half.
    Heartbeat,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // Not returned from `main`: with RUST_BACKTRACE set a backtrace would bury the message.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (words, harness) = split_harness(std::env::args().collect());
    match Cli::parse_from(words).command {
        Command::Test(args) => test(&args.cargo, &harness),
        Command::Show(demonstration) => show(&demonstration),
        Command::Dev(args) => dev::run(args.port, args.binaries),
        Command::Schema => {
            Cargo::new(["test", "--workspace", "--test", "schema"])
                .env("KEFU_UPDATE_SCHEMA", "1")
                .run()?;
            Ok(())
        }
        Command::Tidy => {
            Cargo::new(["test", "--workspace", "--test", "tidy"]).run()?;
            Ok(())
        }
    }
}

/// Splits what follows `--` off the `test` command. The parser cannot: where it lets arguments
/// begin with a hyphen it takes `--` for one more of them, unless it comes first.
fn split_harness(mut words: Vec<String>) -> (Vec<String>, Vec<String>) {
    let is_test = words.get(1).is_some_and(|command| command == "test");
    match words.iter().position(|word| word == "--") {
        Some(at) if is_test => {
            let harness = words.split_off(at).split_off(1);
            (words, harness)
        }
        _ => (words, Vec::new()),
    }
}

/// The test command. Compiling is a step of its own, so that the time printed is the tests' alone.
fn test(arguments: &[String], harness: &[String]) -> Result<()> {
    prerequisite::install_missing(&prerequisite::TESTS)?;
    let cargo = |step: &[&str]| {
        Cargo::new(["test", "--workspace", "--no-fail-fast"]).args(step).args(arguments)
    };
    let Elapsed(compiling) = cargo(&["--no-run"]).run()?;
    let Elapsed(running) = cargo(&[]).args(["--"]).args(harness).with_many_open_files().run()?;
    println!("compiled in {}, tests ran in {}", seconds(compiling), seconds(running));
    Ok(())
}

fn show(demonstration: &Demonstration) -> Result<()> {
    let cargo = |name: &str| {
        Cargo::new(["test", "--release", "--workspace", "--test", name, "--", "--nocapture"])
            .with_many_open_files()
    };
    // The harness takes the name of a part of the tests as a filter.
    let cluster = |part: &str| cargo("cluster").args([part]);
    match demonstration {
        Demonstration::Spread { rounds } => {
            cluster("spread::").env("KEFU_SPREAD_ROUNDS", rounds.to_string()).run()?
        }
        Demonstration::Race { requests } => {
            cluster("race::").env("KEFU_RACE_REQUESTS", requests.to_string()).run()?
        }
        Demonstration::ClusterKill { rounds, pairs } => cluster("node::")
            .env("KEFU_CLUSTER_ROUNDS", rounds.to_string())
            .env("KEFU_CLUSTER_PAIRS", pairs.to_string())
            .run()?,
        Demonstration::ClusterRedis { seconds, sessions } => cluster("redis::")
            .env("KEFU_OUTAGE_SECONDS", seconds.to_string())
            .env("KEFU_OPEN_SESSIONS", sessions.to_string())
            .run()?,
        Demonstration::ClusterPostgres { seconds } => {
            cluster("database::").env("KEFU_OUTAGE_SECONDS", seconds.to_string()).run()?
        }
        Demonstration::ClusterFreeze { seconds } => {
            cluster("freeze::").env("KEFU_FREEZE_SECONDS", seconds.to_string()).run()?
        }
        Demonstration::Throughput { rounds } => {
            // The test starts programs of other packages, which its own build does not bring along.
            Cargo::new(["build", "--release", "--workspace", "--bins"]).run()?;
            cargo("throughput").env("KEFU_THROUGHPUT_ROUNDS", rounds.to_string()).run()?
        }
        Demonstration::Kill { rounds, pairs } => cargo("kill")
            .env("KEFU_KILL_ROUNDS", rounds.to_string())
            .env("KEFU_KILL_PAIRS", pairs.to_string())
            .run()?,
        Demonstration::Idle { connections } => {
            cargo("idle").env("KEFU_IDLE_CONNECTIONS", connections.to_string()).run()?
        }
        Demonstration::Heartbeat => cargo("heartbeat").env("KEFU_HEARTBEAT", "60s").run()?,
    };
    Ok(())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_args(line: &[&str]) -> (Vec<String>, Vec<String>) {
        let words = ["xtask", "test"].iter().chain(line).map(|word| (*word).to_owned());
        let (words, harness) = split_harness(words.collect());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Test(args) => (args.cargo, harness),
            _ => panic!("not the test command"),
        }
    }

    #[test]
    fn extra_arguments_reach_cargo_and_the_harness() {
        let (cargo, harness) = test_args(&["--test", "kill", "--", "--nocapture", "filter"]);
        assert_eq!(cargo, ["--test", "kill"]);
        assert_eq!(harness, ["--nocapture", "filter"]);
    }

    #[test]
    fn the_harness_can_be_addressed_alone() {
        let (cargo, harness) = test_args(&["--", "--nocapture"]);
        assert!(cargo.is_empty());
        assert_eq!(harness, ["--nocapture"]);
        let (cargo, harness) = test_args(&["filter"]);
        assert_eq!(cargo, ["filter"]);
        assert!(harness.is_empty());
    }

    #[test]
    fn the_long_demonstrations_have_the_promised_size() {
        let parse = |name| Cli::try_parse_from(["xtask", "show", name]).unwrap().command;
        assert!(matches!(
            parse("kill"),
            Command::Show(Demonstration::Kill { rounds: 20, pairs: 50 })
        ));
        assert!(matches!(
            parse("idle"),
            Command::Show(Demonstration::Idle { connections: 10_000 })
        ));
        assert!(matches!(parse("race"), Command::Show(Demonstration::Race { requests: 100_000 })));
        assert!(matches!(parse("spread"), Command::Show(Demonstration::Spread { rounds: 50 })));
        assert!(matches!(
            parse("cluster-freeze"),
            Command::Show(Demonstration::ClusterFreeze { seconds: 90 })
        ));
        assert!(matches!(
            parse("throughput"),
            Command::Show(Demonstration::Throughput { rounds: 5 })
        ));
        assert!(matches!(parse("heartbeat"), Command::Show(Demonstration::Heartbeat)));
    }
}
