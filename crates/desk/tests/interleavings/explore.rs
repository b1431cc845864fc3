//! Many schedules of one scene, repeatable by seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kefu_testkit::seeded;
use rand::RngExt;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

/// Random schedules among which a mistake must show.
const TO_CATCH: usize = 10_000;
/// Random schedules of a scene for each one by priorities with few changes (PCT).
const RANDOM_PER_PCT: usize = 5;
/// Changes of priority in one schedule: most races need no more than three.
const DEPTH: usize = 3;

/// Runs a scene under `random` schedules and a fifth as many of PCT. A scene fails by panicking or by
/// a deadlock; the seed and the failing schedule are printed.
pub(crate) fn holds(name: &str, random: usize, scene: fn()) {
    let seed = seeded(&format!("cargo test --workspace --test interleavings {name}")).random();
    let ran = run(RandomScheduler::new_from_seed(seed, random), Config::new(), scene);
    assert_eq!(ran, random);
    let pct = random / RANDOM_PER_PCT;
    let ran = run(PctScheduler::new_from_seed(seed, DEPTH, pct), Config::new(), scene);
    assert_eq!(ran, pct);
}

/// Runs a broken scene under up to [`TO_CATCH`] random schedules, with a fixed seed, and demands
/// that one of them fails for the reason that was broken.
pub(crate) fn is_caught(reason: &str, scene: fn()) {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    let scheduler = RandomScheduler::new_from_seed(7, TO_CATCH);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(scheduler, config, scene)));
    let panic = outcome.expect_err("no schedule failed");
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let text = text.unwrap_or_default();
    assert!(text.contains(reason), "failed for another reason: {text}");
}

fn run(scheduler: impl Scheduler + 'static, config: Config, scene: fn()) -> usize {
    Runner::new(scheduler, config).run(scene)
}
