//! The `gateway` binary: parses arguments and calls `kefu-app`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use kefu_app::{Command, Role, TokenRequest};

/// Online customer service: visitors talk to agents over WebSocket.
#[derive(Parser)]
#[command(name = "gateway", version)]
struct Cli {
    /// A TOML file that overrides the defaults; environment variables KEFU__SECTION__KEY override it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Subcommands>,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Serve until SIGTERM or SIGINT. Also without any argument.
    Serve,
    /// Print the effective settings as TOML, secrets redacted. Exit code 2 when they are refused.
    CheckConfig,
    /// Bring the database to the schema of this version.
    Migrate,
    /// Print a token, signed with this installation's secret.
    Token(TokenArgs),
}

#[derive(Args)]
struct TokenArgs {
    /// The id of the person: 1 to 64 characters of A-Z a-z 0-9 _ . -
    #[arg(long, value_name = "ID")]
    sub: String,
    /// What the person may do.
    #[arg(long)]
    role: RoleArg,
    /// The name that others see; else the id.
    #[arg(long)]
    name: Option<String>,
    /// A visitor's balance in minor units: the waiting line goes by it.
    #[arg(long, allow_negative_numbers = true)]
    balance: Option<i64>,
    /// Seconds until the token expires.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600,
          value_parser = clap::value_parser!(u64).range(1..=315_360_000))]
    ttl: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
    User,
    Agent,
    Supervisor,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::User => Self::User,
            RoleArg::Agent => Self::Agent,
            RoleArg::Supervisor => Self::Supervisor,
        }
    }
}

impl From<Subcommands> for Command {
    fn from(command: Subcommands) -> Self {
        match command {
            Subcommands::Serve => Self::Serve,
            Subcommands::CheckConfig => Self::CheckConfig,
            Subcommands::Migrate => Self::Migrate,
            Subcommands::Token(TokenArgs { sub, role, name, balance, ttl }) => {
                let ttl = Duration::from_secs(ttl);
                Self::Token(TokenRequest { sub, role: role.into(), name, balance, ttl })
            }
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let command = cli.command.map_or(Command::Serve, Command::from);
    let done =
        kefu_app::run(&command, cli.config.as_deref(), std::env::vars_os(), &mut io::stdout());
    let Err(failure) = done else { return ExitCode::SUCCESS };
    // With stderr closed the exit code still tells.
    let _ = writeln!(io::stderr(), "gateway: {failure}");
    ExitCode::from(failure.exit_code())
}
