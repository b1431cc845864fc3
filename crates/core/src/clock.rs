//! Time as a port: wall time for what is stored, monotonic time for deadlines.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Unix time in milliseconds, as stored and as sent on the wire.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time moved forward by `by` (saturating).
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This time moved back by `by` (saturating).
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where time comes from. Passed in everywhere; ambient clocks are banned by `clippy.toml`.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Wall time. May step in either direction; never used for deadlines.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary start that never goes back. For deadlines only.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts at zero now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the ambient clock")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the ambient clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<(Timestamp, Duration)>,
}

impl ManualClock {
    /// Stands at `now`, with monotonic time zero.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self { state: Mutex::new((now, Duration::ZERO)) }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = state.0.after(by);
        state.1 += by;
    }

    /// Steps the wall clock only, as NTP or an operator would (T1).
    pub fn step_wall(&self, by_ms: i64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = Timestamp(state.0.0 + by_ms);
    }
}

impl Default for ManualClock {
    /// Stands at 2026-01-28 00:00:00 UTC.
    fn default() -> Self {
        Self::at(Timestamp(1_769_558_400_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}
