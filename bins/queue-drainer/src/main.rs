//! The `queue-drainer` binary: parses arguments and calls `kefu-app`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kefu_app::Command;

/// What one process of a cluster does for all: run two or more.
#[derive(Parser)]
#[command(name = "queue-drainer", version)]
struct Cli {
    /// A TOML file that overrides the defaults; environment variables KEFU__SECTION__KEY override it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Subcommands>,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Sweep until SIGTERM or SIGINT. Also without any argument.
    Serve,
    /// Print the effective settings as TOML, secrets redacted. Exit code 2 when they are refused.
    CheckConfig,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let command = match cli.command {
        None | Some(Subcommands::Serve) => Command::Drain,
        Some(Subcommands::CheckConfig) => Command::CheckConfig,
    };
    let done =
        kefu_app::run(&command, cli.config.as_deref(), std::env::vars_os(), &mut io::stdout());
    let Err(failure) = done else { return ExitCode::SUCCESS };
    // With stderr closed the exit code still tells.
    let _ = writeln!(io::stderr(), "queue-drainer: {failure}");
    ExitCode::from(failure.exit_code())
}
