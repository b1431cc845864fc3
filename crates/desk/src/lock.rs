//! The lock of Z4 around opening and claiming for one user.

use std::future::Future;

use kefu_core::UserId;

use crate::Desk;

impl Desk {
    /// Runs `work` with the user's lock held, or without it while somebody else holds it or it cannot
    /// be had: it only keeps ten tabs from queueing for one row, correctness never depends on it.
    pub(crate) async fn under_assign_lock<T>(
        &self,
        user: &UserId,
        work: impl Future<Output = T> + Send,
    ) -> T {
        let lock = &self.coordination.assign_lock;
        let token = lock.try_acquire(user, self.config.assign_lock).await.ok().flatten();
        let outcome = work.await;
        if let Some(token) = token
            && let Err(fault) = lock.release(user, token).await
        {
            tracing::debug!(%fault, "assign lock left to expire");
        }
        outcome
    }
}
