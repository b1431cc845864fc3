//! Logs and metrics. Logs carry ids and numbers, never texts, tokens or names of people.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// What is logged unless `RUST_LOG` says otherwise; the migrator tells three lines per migration.
const LEVELS: &str = "info,sea_orm_migration=warn";
/// Between two rounds of folding recorded histogram samples, which are kept one by one until then.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Begins to log to stderr; which levels, `RUST_LOG` says.
pub(crate) fn start_logging(format: LogFormat) -> Result<()> {
    let levels = std::env::var("RUST_LOG").unwrap_or_default();
    let levels = if levels.is_empty() { LEVELS } else { &levels };
    let filter = EnvFilter::try_new(levels).context("RUST_LOG")?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!(error)).context("cannot start logging")
}

/// The recorded metrics.
#[derive(Clone)]
pub(crate) struct Metrics(PrometheusHandle);

/// Begins to record metrics.
pub(crate) fn install_metrics() -> Result<Metrics> {
    let handle = PrometheusBuilder::new().install_recorder().context("cannot record metrics")?;
    Ok(Metrics(handle))
}

impl Metrics {
    /// Renders `/metrics`.
    pub(crate) fn renderer(&self) -> Arc<dyn Fn() -> String + Send + Sync> {
        let handle = self.0.clone();
        Arc::new(move || handle.render())
    }

    /// Keeps the recorder's memory bounded though nobody scrapes it, until `stop`.
    pub(crate) async fn upkeep(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(UPKEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => self.0.run_upkeep(),
            }
        }
    }
}
