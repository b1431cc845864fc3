//! Wrappers that make a store fail or wait, at a chosen call.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kefu_core::StoreFault;
use tokio::sync::watch;

/// On which side of the inner call a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// The inner call is not made.
    Before,
    /// The inner call is made and its answer is lost.
    After,
}

#[derive(Debug, Default)]
struct Plan {
    writes: u64,
    strikes: Vec<(u64, Strike, StoreFault)>,
    outage: Option<StoreFault>,
}

/// A store whose writes fail as planned. Writes are counted from 1 over all methods.
#[derive(Debug)]
pub struct Flaky<S: ?Sized> {
    pub(crate) inner: Arc<S>,
    plan: Mutex<Plan>,
}

impl<S: ?Sized> Flaky<S> {
    /// Fails nothing yet.
    #[must_use]
    pub fn new(inner: Arc<S>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// Fails the `nth` write from now with `fault`.
    pub fn fail(&self, nth: u64, strike: Strike, fault: StoreFault) {
        let mut plan = self.plan();
        let number = plan.writes + nth;
        plan.strikes.push((number, strike, fault));
    }

    /// Loses the answer of the `nth` write from now: it is applied and reported as indeterminate.
    pub fn lose_answer(&self, nth: u64) {
        let reason = "answer lost by test".to_owned();
        self.fail(nth, Strike::After, StoreFault::Indeterminate { reason });
    }

    /// Fails every call, reads included, until [`Self::mend`] (N5).
    pub fn cut(&self) {
        self.cut_with(StoreFault::unavailable("cut by test"));
    }

    /// Fails every call, reads included, with `fault` until [`Self::mend`].
    pub fn cut_with(&self, fault: StoreFault) {
        self.plan().outage = Some(fault);
    }

    /// Ends [`Self::cut`].
    pub fn mend(&self) {
        self.plan().outage = None;
    }

    /// How many writes were tried.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.plan().writes
    }

    fn next_write(&self) -> Option<(Strike, StoreFault)> {
        let mut plan = self.plan();
        plan.writes += 1;
        if let Some(fault) = plan.outage.clone() {
            return Some((Strike::Before, fault));
        }
        let number = plan.writes;
        let due = plan.strikes.iter().position(|(nth, ..)| *nth == number)?;
        let (_, strike, fault) = plan.strikes.swap_remove(due);
        Some((strike, fault))
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: ?Sized + Send + Sync> Flaky<S> {
    pub(crate) async fn write<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        match self.next_write() {
            None => call.await,
            Some((Strike::Before, fault)) => Err(fault),
            Some((Strike::After, fault)) => {
                call.await?;
                Err(fault)
            }
        }
    }

    pub(crate) async fn read<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        let outage = self.plan().outage.clone();
        outage.map_or(Ok(()), Err)?;
        call.await
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct GateState {
    closed: bool,
    arrived: usize,
}

/// Holds calls while closed.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<GateState>);

impl Gate {
    /// An open gate.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(GateState::default()))
    }

    /// Holds every call from now on, and counts them anew.
    pub fn close(&self) {
        self.0.send_replace(GateState { closed: true, arrived: 0 });
    }

    /// Lets all calls go.
    pub fn open(&self) {
        self.0.send_modify(|state| state.closed = false);
    }

    /// Waits until `calls` calls stand, or stood, before the closed gate.
    ///
    /// # Panics
    /// Never: the gate itself keeps the channel open.
    pub async fn held(&self, calls: usize) {
        let mut states = self.0.subscribe();
        states.wait_for(|state| state.arrived >= calls).await.expect("the sender lives");
    }

    async fn pass(&self) {
        let mut states = self.0.subscribe();
        if states.borrow_and_update().closed {
            self.0.send_modify(|state| state.arrived += 1);
        }
        states.wait_for(|state| !state.closed).await.expect("the sender lives");
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// A store whose writes wait at a [`Gate`] before they begin. Reads pass.
#[derive(Debug)]
pub struct Slow<S: ?Sized> {
    pub(crate) inner: Arc<S>,
    gate: Gate,
}

impl<S: ?Sized> Slow<S> {
    /// With its gate.
    #[must_use]
    pub const fn new(inner: Arc<S>, gate: Gate) -> Self {
        Self { inner, gate }
    }
}

impl<S: ?Sized + Send + Sync> Slow<S> {
    pub(crate) async fn write<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        self.gate.pass().await;
        call.await
    }

    /// The shape of [`Flaky`]'s, for the delegation.
    pub(crate) async fn read<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        call.await
    }
}

/// A store one of whose answers comes late: what it says may hold no longer by then. Says every call as it is
/// made, to who listens to the target `probe`.
#[derive(Debug)]
pub struct Late<S: ?Sized> {
    pub(crate) inner: Arc<S>,
    gate: Gate,
    is_next: AtomicBool,
}

impl<S: ?Sized> Late<S> {
    /// Answers at once until told otherwise.
    #[must_use]
    pub fn new(inner: Arc<S>) -> Self {
        Self { inner, gate: Gate::new(), is_next: AtomicBool::new(false) }
    }

    /// Holds the answer to the next call, until [`Gate::open`]. Those after it come at once.
    pub fn hold_next(&self) -> &Gate {
        self.gate.close();
        self.is_next.store(true, Ordering::SeqCst);
        &self.gate
    }

    /// The gate of the answer that is held.
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }
}

impl<S: ?Sized + Send + Sync> Late<S> {
    pub(crate) async fn write<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        tracing::info!(target: "probe", "store");
        let is_late = self.is_next.swap(false, Ordering::SeqCst);
        let answer = call.await;
        if is_late {
            self.gate.pass().await;
        }
        answer
    }

    pub(crate) async fn read<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFault>> + Send,
    ) -> Result<T, StoreFault> {
        self.write(call).await
    }
}
