//! One pass at a time, and nobody who asked for one is forgotten.
//!
//! Its flag and gate come from [`crate::sync`]: the tests of interleavings compile this very file
//! with a flag and a gate whose every use is a point at which the scheduler may switch tasks.

use std::future::Future;

use crate::sync::{AtomicBool, Mutex, Ordering};

/// Lets one caller at a time pass, on behalf of all.
#[derive(Default)]
pub(crate) struct Turn {
    /// Held by the one who passes; a flag is left by those who find it taken.
    gate: Mutex<()>,
    again: AtomicBool,
}

impl Turn {
    /// Makes sure that a `pass` starts after this call began. Returns the sum of the passes of this
    /// caller: 0 when another one holds the gate, who then goes round again.
    ///
    /// # Errors
    /// That of the first pass that fails.
    pub(crate) async fn run<P, E>(&self, pass: impl Fn() -> P) -> Result<usize, E>
    where
        P: Future<Output = Result<usize, E>>,
    {
        // The flag goes up before the gate is tried and is looked at again after it was given back:
        // whoever raised it in between either finds the gate free or is seen by its holder.
        self.again.store(true, Ordering::SeqCst);
        let mut done = 0;
        while self.again.load(Ordering::SeqCst) {
            let Ok(_pass) = self.gate.try_lock() else { return Ok(done) };
            while self.again.swap(false, Ordering::SeqCst) {
                done += pass().await?;
            }
        }
        Ok(done)
    }
}
