//! Percentiles, and when a board says something new.

use std::time::Duration;

use kefu_console::{BOARD_MINUTES, BoardFigures, Percentiles};
use kefu_core::Timestamp;

fn seconds(of: impl IntoIterator<Item = u64>) -> Vec<Duration> {
    of.into_iter().map(Duration::from_secs).collect()
}

#[test]
fn percentiles_are_of_the_nearest_rank() {
    let of = |all: Vec<Duration>| {
        Percentiles::of(all).map(|times| (times.p50.as_secs(), times.p90.as_secs()))
    };
    assert_eq!(of(Vec::new()), None);
    assert_eq!(of(seconds([7])), Some((7, 7)));
    assert_eq!(of(seconds([2, 1])), Some((1, 2)));
    assert_eq!(of(seconds((1..=10).rev())), Some((5, 9)));
    assert_eq!(of(seconds(1..=11)), Some((6, 10)));
    assert_eq!(of(seconds(1..=100)), Some((50, 90)));
}

/// A wait that grows by itself is nothing new; somebody else who has waited longest is.
#[test]
fn time_alone_says_nothing_new() {
    let at = |time: i64, waiting: usize, longest_ms: u64| BoardFigures {
        time: Timestamp(time),
        waiting,
        longest_wait: Duration::from_millis(longest_ms),
        agents: Vec::new(),
        arrivals: [0; BOARD_MINUTES],
        first_response: None,
    };
    assert!(at(1_000, 1, 400).says_the_same_as(&at(3_000, 1, 2_400)));
    assert!(!at(1_000, 1, 400).says_the_same_as(&at(3_000, 1, 400)));
    assert!(!at(1_000, 1, 400).says_the_same_as(&at(3_000, 2, 2_400)));
    assert!(at(1_000, 0, 0).says_the_same_as(&at(9_000, 0, 0)));
}
