//! What a supervisor's board shows at a moment.

use std::time::Duration;

use kefu_core::{AdminId, Timestamp};

/// Minutes that the board looks back.
pub const BOARD_MINUTES: usize = 60;

/// The figures of all nodes together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardFigures {
    /// When.
    pub time: Timestamp,
    /// How many wait.
    pub waiting: usize,
    /// How long the first of them has waited.
    pub longest_wait: Duration,
    /// Agents who are online or have open sessions, by id.
    pub agents: Vec<BoardAgent>,
    /// Sessions opened, minute by minute, the present one last.
    pub arrivals: [u32; BOARD_MINUTES],
    /// From opening to the first message of an agent, over the sessions opened in these minutes that have one.
    pub first_response: Option<Percentiles>,
}

/// One agent on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardAgent {
    /// The agent.
    pub admin_id: AdminId,
    /// Display name.
    pub name: String,
    /// Whether they are connected and take sessions.
    pub online: bool,
    /// The load.
    pub active_sessions: u32,
    /// The cap.
    pub max_sessions: u32,
}

/// Half, and nine of ten, are at most this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// Half.
    pub p50: Duration,
    /// Nine of ten.
    pub p90: Duration,
}

impl BoardFigures {
    /// Whether these figures say the same as `other`, but for the time that passes by itself.
    #[must_use]
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        self.waiting == other.waiting
            && self.agents == other.agents
            && self.arrivals == other.arrivals
            && self.first_response == other.first_response
            && self.first_since() == other.first_since()
    }

    /// Since when the first of those who wait has waited.
    fn first_since(&self) -> Option<Timestamp> {
        (self.waiting > 0).then(|| self.time.before(self.longest_wait))
    }
}

impl Percentiles {
    /// By nearest rank; `None` of nothing.
    #[must_use]
    pub fn of(mut durations: Vec<Duration>) -> Option<Self> {
        durations.sort_unstable();
        let rank =
            |percent: usize| durations.get((durations.len() * percent).div_ceil(100).max(1) - 1);
        Some(Self { p50: *rank(50)?, p90: *rank(90)? })
    }
}
