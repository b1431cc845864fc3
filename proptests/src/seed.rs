//! The seed of a run, and the one command that repeats it.

use std::fmt;

/// A seed given by `KEFU_TEST_SEED`, or drawn. Its text is the command that repeats the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed {
    test: &'static str,
    /// The number.
    pub(crate) number: u64,
}

impl Seed {
    /// For the tests of `file` (as `file!()` names it): one of `proptests/tests/`.
    pub(crate) fn of(file: &'static str) -> Self {
        let given = std::env::var("KEFU_TEST_SEED").ok();
        let number = given.map_or_else(rand::random, |text| text.parse().expect("a number"));
        let test = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
        Self { test, number }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test, number } = self;
        write!(f, "KEFU_TEST_SEED={number} cargo test -p kefu-proptests --test {test}")
    }
}
