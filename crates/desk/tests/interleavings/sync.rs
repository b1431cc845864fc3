//! A flag and a gate whose every use is a point at which the scheduler may switch tasks.

pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{MutexGuard, TryLockError};

/// tokio's mutex, with a switch before it is tried and one before it is given back.
#[derive(Default)]
pub(crate) struct Mutex<T> {
    real: tokio::sync::Mutex<T>,
    switch: AtomicBool,
}

pub(crate) struct Guard<'a, T> {
    _real: MutexGuard<'a, T>,
    switch: &'a AtomicBool,
}

impl<T> Mutex<T> {
    pub(crate) fn try_lock(&self) -> Result<Guard<'_, T>, TryLockError> {
        self.switch.load(Ordering::SeqCst);
        Ok(Guard { _real: self.real.try_lock()?, switch: &self.switch })
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.switch.load(Ordering::SeqCst);
        }
    }
}
