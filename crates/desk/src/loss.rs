//! Whether everything that may be lost was lost at once: nothing announces it, only the age of what is
//! held tells (P4, A1).

use std::time::Duration;

use kefu_core::Clock;
use kefu_presence::PresenceStore;

/// How much the age may lag behind this process's own clock without a loss: it is in whole milliseconds,
/// and the store's clock may go a little slower. A loss seen where there was none costs a rebuild.
const LAG: Duration = Duration::from_millis(5);

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing was lost since the previous look.
    Whole,
    /// Everything may have been lost: it was, or could not be seen meanwhile.
    Lost,
    /// It cannot be seen now.
    Away,
}

/// Compares the age of what is held with the time that has passed.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The age at the previous look, and when it was known.
    known: Option<(Duration, Duration)>,
    was_away: bool,
}

impl Losses {
    pub(crate) async fn look(&mut self, presence: &dyn PresenceStore, clock: &dyn Clock) -> Look {
        let asked = clock.monotonic();
        let Ok(age) = presence.age().await else {
            self.was_away = true;
            return Look::Away;
        };
        // The age was read after it was asked for, and the previous one before it was known; so it has
        // grown by what lies in between at least, however long the answers took.
        let grown = |(age, known): (Duration, Duration)| age + asked.saturating_sub(known);
        let is_younger = self.known.map(grown).is_some_and(|least| age + LAG < least);
        self.known = Some((age, clock.monotonic()));
        if std::mem::take(&mut self.was_away) || is_younger { Look::Lost } else { Look::Whole }
    }
}
