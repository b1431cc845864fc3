//! What the binary can be asked to do, and how it fails.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use kefu_core::{Clock, SystemClock};
use kefu_sqlite::{SqliteOptions, SqliteStore};
use tokio::runtime::{Builder, Runtime};

use crate::config::{Config, ConfigError, Profile};
use crate::signing_secret::SigningSecret;
use crate::token::{self, TokenRequest};
use crate::{cluster, drainer, embedded, server, telemetry};

/// What the binary can be asked to do.
#[derive(Debug, Clone)]
pub enum Command {
    /// Serve until SIGTERM or SIGINT.
    Serve,
    /// Do what one process does for all, until SIGTERM or SIGINT.
    Drain,
    /// Print the effective settings, secrets redacted.
    CheckConfig,
    /// Bring the database to the schema of this build.
    Migrate,
    /// Print a token.
    Token(TokenRequest),
}

/// Why a command failed; its text is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The settings are refused.
    #[error("configuration: {0}")]
    Config(#[from] ConfigError),
    /// Anything else.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl Failure {
    /// The exit code of the process: 2 when the settings are refused (as for wrong arguments), else 1.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Other(_) => 1,
        }
    }
}

/// Runs `command` with the settings of `file` and `environment`; results go to `out`, logs to stderr.
///
/// # Errors
/// [`Failure`].
pub fn run(
    command: &Command,
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let config = Config::load(file, environment)?;
    match command {
        Command::Serve => serve(&config, out)?,
        Command::Drain => drain(&config, out)?,
        Command::CheckConfig => print(out, config.to_redacted_toml()?.trim_end())?,
        Command::Migrate => migrate(&config, out)?,
        Command::Token(request) => print(out, &mint(&config, request)?)?,
    }
    Ok(())
}

fn serve(config: &Config, out: &mut (dyn Write + Send)) -> Result<()> {
    telemetry::start_logging(config.log.format)?;
    let metrics = telemetry::install_metrics()?;
    let runtime = runtime()?;
    let served = runtime.block_on(server::serve(config, metrics, out));
    // What is still running was given its time (L3), or a second signal asked not to wait.
    runtime.shutdown_background();
    served
}

fn drain(config: &Config, out: &mut (dyn Write + Send)) -> Result<()> {
    ensure!(
        config.profile == Profile::Cluster,
        "profile: the embedded gateway drains its own queue; a drainer is for \"cluster\""
    );
    telemetry::start_logging(config.log.format)?;
    let metrics = telemetry::install_metrics()?;
    let runtime = runtime()?;
    let drained = runtime.block_on(drainer::sweep(config, metrics, out));
    runtime.shutdown_background();
    drained
}

fn migrate(config: &Config, out: &mut (dyn Write + Send)) -> Result<()> {
    match config.profile {
        Profile::Embedded => migrate_file(config, out),
        Profile::Cluster => {
            runtime()?.block_on(cluster::migrate(config))?;
            print(out, "the database is at the schema of this version")
        }
    }
}

fn migrate_file(config: &Config, out: &mut (dyn Write + Send)) -> Result<()> {
    embedded::make_data_dir(&config.data_dir)?;
    let path = embedded::database_path(&config.data_dir);
    let existed = path.exists();
    runtime()?.block_on(async {
        let store = SqliteStore::open(&path, SqliteOptions::default()).await?;
        store.close().await;
        anyhow::Ok(())
    })?;
    let done = if existed { "is at the schema of this version" } else { "created" };
    print(out, &format!("{}: {done}", path.display()))
}

fn mint(config: &Config, request: &TokenRequest) -> Result<String> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    if config.auth.jwks_file.is_none() {
        embedded::make_data_dir(&config.data_dir)?;
    }
    let secret = SigningSecret::load(config)?;
    let now = clock.now();
    token::mint(&secret.authenticator(config, clock)?, request, now)
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")
}

/// Prints a result; flushed, since scripts wait for it.
pub(crate) fn print(out: &mut (dyn Write + Send), result: &str) -> Result<()> {
    writeln!(out, "{result}").and_then(|()| out.flush()).context("cannot write to stdout")
}
