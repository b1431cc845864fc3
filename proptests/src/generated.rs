//! Generated cases: `proptest` as the driver of asynchronous checks.

use std::fmt::Debug;
use std::future::Future;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestRunner};
use tokio::runtime::Handle;

use crate::Violation;
use crate::seed::Seed;

/// Runs `check` on `cases` values of `strategy`; a failing value is made smaller and kept beside
/// `file` (as `file!()` names it) in a `.regressions` file, which is tried first from then on.
///
/// A failure tells its seed and the command that repeats it.
///
/// # Errors
/// The smallest failing value found, with its violation.
///
/// # Panics
/// Outside a multi-threaded runtime.
pub fn generated<S, F>(
    file: &'static str,
    cases: u32,
    strategy: &S,
    check: impl Fn(S::Value) -> F,
) -> Result<(), Violation>
where
    S: Strategy<Value: Debug>,
    F: Future<Output = Result<(), Violation>>,
{
    let seed = Seed::of(file);
    let config = Config {
        cases,
        max_shrink_iters: 256,
        source_file: Some(file),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        rng_seed: RngSeed::Fixed(seed.number),
        ..Config::default()
    };
    let run = |value| {
        let done = tokio::task::block_in_place(|| Handle::current().block_on(check(value)));
        done.map_err(|violation| TestCaseError::fail(violation.to_string()))
    };
    let outcome = TestRunner::new(config).run(strategy, run);
    outcome.map_err(|failure| Violation::new(format!("{failure}\nrepeat with: {seed}")))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::ensure;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_failing_value_is_made_smaller_kept_and_tried_first() {
        let folder = TempDir::new().expect("a temporary folder");
        let source = folder.path().join("x.rs");
        std::fs::write(&source, "").expect("writable");
        let file: &'static str = source.display().to_string().leak();
        let small = async |value: u32| ensure(value < 100, || format!("{value} is too much"));
        let found = generated(file, 256, &(0..1_000_u32), small);
        let told = found.expect_err("a failure").to_string();
        assert!(told.contains("100 is too much"), "{told}");
        assert!(told.contains("cargo test -p kefu-proptests --test x"), "{told}");
        assert!(folder.path().join("x.regressions").exists());
        let again = generated(file, 1, &(0..1_000_u32), small);
        assert!(again.is_err(), "a kept value fails whatever the next one is");
    }
}
