//! Running a machine: that it holds, and that it is able not to.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{
    Config, FailurePersistence, FileFailurePersistence, RngSeed, TestRunner,
};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::seed::Seed;

/// Cases on a broken system; every break is met long before.
const BROKEN_CASES: u32 = 256;
/// Steps of one case on a broken system.
const BROKEN_STEPS: usize = 40;

/// Runs `cases` cases of up to `steps` steps. A failing case is made smaller and kept beside `file` (as
/// `file!()` names it) in a `.regressions` file, which is tried first from then on.
///
/// # Panics
/// When a case fails; tells the smallest one, the seed and the command that repeats it.
pub fn holds<M: StateMachineTest>(file: &'static str, cases: u32, steps: usize) {
    let kept = FileFailurePersistence::WithSource("regressions");
    repeatable::<M>(file, cases, steps, Some(Box::new(kept)));
}

fn repeatable<M: StateMachineTest>(
    file: &'static str,
    cases: u32,
    steps: usize,
    kept: Option<Box<dyn FailurePersistence>>,
) {
    let seed = Seed::of(file);
    let outcome = run::<M>(file, cases, steps, seed.number, kept);
    if let Err(failure) = outcome {
        panic!("{failure}\nrepeat with: {seed}");
    }
}

/// Runs a machine on a system with one broken rule, always with the same cases, until it notices.
///
/// # Panics
/// When it does not, or for another reason than `because`.
pub fn caught<M: StateMachineTest>(because: &str) {
    let config = Config { rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let strategy = M::Reference::sequential_strategy(1..=BROKEN_STEPS);
    let mut runner = TestRunner::new(config.clone());
    for _ in 0..BROKEN_CASES {
        let case = strategy.new_tree(&mut runner).expect("a case");
        let (state, transitions, seen) = case.current();
        let run = || M::test_sequential(config.clone(), state, transitions, seen);
        // Nothing of the case is looked at after a panic.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            let reason = told(panic.as_ref());
            assert!(reason.contains(because), "noticed for another reason: {reason}");
            return;
        }
    }
    panic!("the machine holds on a broken system");
}

fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default()
}

fn run<M: StateMachineTest>(
    file: &'static str,
    cases: u32,
    steps: usize,
    seed: u64,
    kept: Option<Box<dyn FailurePersistence>>,
) -> Result<(), String> {
    let config = Config {
        cases,
        max_shrink_iters: 1_024,
        source_file: Some(file),
        failure_persistence: kept,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let strategy = M::Reference::sequential_strategy(1..=steps);
    TestRunner::new(config.clone())
        .run(&strategy, |(state, transitions, seen)| {
            M::test_sequential(config.clone(), state, transitions, seen);
            Ok(())
        })
        .map_err(|failure| failure.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{BoxedStrategy, Just};

    use super::*;

    /// Counts its steps; the system under test cannot count to three.
    struct Count;

    impl ReferenceStateMachine for Count {
        type State = u32;
        type Transition = &'static str;

        fn init_state() -> BoxedStrategy<u32> {
            Just(0).boxed()
        }

        fn transitions(_: &u32) -> BoxedStrategy<&'static str> {
            Just("one more").boxed()
        }

        fn apply(state: u32, _: &&'static str) -> u32 {
            state + 1
        }
    }

    impl StateMachineTest for Count {
        type SystemUnderTest = u32;
        type Reference = Self;

        fn init_test(_: &u32) -> u32 {
            0
        }

        fn apply(state: u32, due: &u32, _: &'static str) -> u32 {
            let count = (state + 1).min(2);
            assert_eq!(count, *due, "the count");
            count
        }
    }

    #[test]
    fn a_failure_tells_the_smallest_case_and_how_to_repeat_it() {
        let failed = catch_unwind(|| repeatable::<Count>("proptests/tests/count.rs", 64, 20, None));
        let panic = failed.expect_err("a failure");
        let text = told(panic.as_ref());
        let steps = text.matches("one more").count();
        assert_eq!(steps, 3, "{text}");
        assert!(text.contains("KEFU_TEST_SEED="), "{text}");
        assert!(text.contains("cargo test -p kefu-proptests --test count"), "{text}");
    }

    #[test]
    fn a_break_is_caught_for_its_reason() {
        caught::<Count>("the count");
        let other = catch_unwind(|| caught::<Count>("something else"));
        assert!(other.is_err(), "another reason does not count");
    }
}
