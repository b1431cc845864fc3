//! How long the store takes, as a metric.

use tokio::time::Instant;

/// Runs from the start of a call of the store.
pub(crate) struct Timer(Instant);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Records the time until now, repeats included, under the operation that it was.
    pub(crate) fn record(self, operation: &'static str) {
        metrics::histogram!("kefu_store_seconds", "operation" => operation)
            .record(self.0.elapsed().as_secs_f64());
    }
}
