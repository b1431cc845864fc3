//! Things at once, and chance that can be repeated.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Nothing here takes nearly this long; whoever reaches it is stuck in a deadlock.
const STUCK: Duration = Duration::from_secs(60);

/// Runs `tasks` tasks that start together, and gives their results in the order of their numbers.
///
/// # Panics
/// When a task panics, or when they do not finish: a deadlock.
pub async fn race<T, F, Fut>(tasks: usize, task: F) -> Vec<T>
where
    T: Send + 'static,
    F: Fn(usize) -> Fut,
    Fut: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(tasks));
    let mut running = JoinSet::new();
    for number in 0..tasks {
        let work = task(number);
        let barrier = Arc::clone(&barrier);
        running.spawn(async move {
            barrier.wait().await;
            (number, work.await)
        });
    }
    let joined = tokio::time::timeout(STUCK, running.join_all()).await;
    let mut results = joined.expect("no deadlock");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A generator whose seed is printed, and taken from `KEFU_TEST_SEED` when that is set.
///
/// # Panics
/// When `KEFU_TEST_SEED` is not a number.
#[must_use]
#[expect(clippy::print_stderr, reason = "a failed random test must say how to repeat it")]
pub fn seeded(test: &str) -> StdRng {
    let given = std::env::var("KEFU_TEST_SEED").ok();
    let seed = given.map_or_else(rand::random, |text| text.parse().expect("a number"));
    eprintln!("{test}: repeat with KEFU_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
