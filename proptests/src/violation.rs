//! A broken promise as a value.

use std::fmt;

use kefu_core::StoreFault;
use kefu_testkit::check::Ledger;

/// One broken promise, in words.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    /// A violation told as `what`.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a failing test prints.
impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StoreFault> for Violation {
    fn from(fault: StoreFault) -> Self {
        Self(format!("the store failed: {fault}"))
    }
}

/// Fails with `what` unless `holds`.
///
/// # Errors
/// The violation.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(what())) }
}

/// Everything that must hold of a store whatever happened before.
///
/// # Errors
/// All that does not hold, one a line.
pub fn sound(ledger: &Ledger) -> Result<(), Violation> {
    let found: Vec<_> = ledger.violations().iter().map(ToString::to_string).collect();
    ensure(found.is_empty(), || found.join("\n"))
}

/// For a broken world: the check must fail there, and for the reason that was broken.
///
/// # Errors
/// When the check found nothing, or something else.
pub fn caught(checked: Result<(), Violation>, because: &str) -> Result<(), Violation> {
    match checked {
        Ok(()) => Err(Violation(format!("the check holds on a broken world ({because})"))),
        Err(found) => ensure(found.0.contains(because), || {
            format!("the check fails for another reason than {because:?}: {found}")
        }),
    }
}
