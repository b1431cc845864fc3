//! Any bytes at all: one function a target says what must hold of them, and `proptest` on the stable
//! toolchain drives it with mutations of the files kept in `proptests/corpus/<target>/`.
//!
//! The functions take plain bytes, so any other fuzzer can call them as they are.

pub mod config;
pub mod frame;
pub mod handler;
pub mod image;
pub mod link;
mod mutation;

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use proptest::test_runner::{
    Config, RngSeed, TestCaseError, TestCaseResult, TestError, TestRunner,
};

use crate::Violation;
use crate::seed::Seed;
use mutation::input;

/// What a target's inputs look like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The folder in `proptests/corpus/`.
    pub name: &'static str,
    /// Pieces that mean something to the reader of the input.
    pub words: &'static [&'static [u8]],
    /// Makes a mutated input pass its own checksums, so that what lies behind them is reached too.
    pub mended: fn(Vec<u8>) -> Vec<u8>,
}

/// Bytes that print as text.
#[derive(Clone, PartialEq, Eq)]
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// Runs `target` on every kept file and then on `cases` mutations. A failure tells its seed, and keeps
/// the failing input as a new file of the corpus, which is tried first from then on.
///
/// # Errors
/// The smallest failing input found, with what does not hold of it.
///
/// # Panics
/// When the corpus cannot be read or written.
pub fn fuzz(
    shape: &Shape,
    cases: u32,
    target: impl Fn(&[u8]) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(shape.name);
    let found = search(shape, &corpus, cases, target);
    found.map_err(|(input, violation)| {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let file = corpus.join(format!("failed-{:016x}", hasher.finish()));
        fs::write(&file, input).expect("the corpus can be written");
        Violation::new(format!("{violation}\nkept as {}", file.display()))
    })
}

/// For a broken subject: like [`fuzz`], but what fails is meant to, and is not kept.
///
/// # Errors
/// The smallest failing input found, with what does not hold of it.
///
/// # Panics
/// When the corpus cannot be read.
pub fn fuzz_broken(
    shape: &Shape,
    cases: u32,
    target: impl Fn(&[u8]) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(shape.name);
    search(shape, &corpus, cases, target).map_err(|(_, violation)| violation)
}

fn search(
    shape: &Shape,
    corpus: &Path,
    cases: u32,
    target: impl Fn(&[u8]) -> Result<(), Violation>,
) -> Result<(), (Vec<u8>, Violation)> {
    let seeds = kept(corpus);
    let repeat = Seed::of("fuzz");
    let config = Config {
        cases,
        max_shrink_iters: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(repeat.number),
        ..Config::default()
    };
    let check = |Input(bytes): Input| -> TestCaseResult {
        target(&bytes).map_err(|violation| TestCaseError::fail(violation.to_string()))
    };
    for seed in &seeds {
        let given = Input(seed.clone());
        check(given).map_err(|found| (seed.clone(), Violation::new(found.to_string())))?;
    }
    match TestRunner::new(config).run(&input(shape, seeds), check) {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, found)) => {
            let told = format!("{why} for {found:?}\nrepeat with: {repeat}");
            Err((found.0, Violation::new(told)))
        }
        Err(TestError::Abort(why)) => Err((Vec::new(), Violation::new(why.to_string()))),
    }
}

/// The files of a corpus, in the order of their names.
fn kept(corpus: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(corpus).expect("the corpus can be read");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the corpus can be read").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a kept file can be read")).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::ensure;

    const SHAPE: Shape = Shape { name: "x", words: &[b"bang"], mended: |bytes| bytes };

    #[test]
    fn what_fails_is_made_smaller_and_a_panic_is_a_failure() {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("seed"), "a quiet seed").expect("writable");
        let quiet = |bytes: &[u8]| {
            let bangs = bytes.windows(4).any(|part| part == b"bang");
            ensure(!bangs, || "it bangs".into())
        };
        // One search may use up its steps half-way: the best of eight, each with a seed of its own.
        let found = (0..8)
            .map(|_| search(&SHAPE, folder.path(), 2_000, quiet).expect_err("a word of its own").0);
        let smallest = found.min_by_key(Vec::len).expect("eight");
        assert!(smallest.len() <= "a quiet seedbang".len(), "made smaller: {smallest:?}");
        let panics = |bytes: &[u8]| {
            assert_eq!(bytes, b"a quiet seed");
            Ok(())
        };
        assert!(search(&SHAPE, folder.path(), 100, panics).is_err());
    }
}
