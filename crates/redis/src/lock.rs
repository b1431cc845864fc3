//! `cs:lock:assign:{userId}`: `SET NX PX` with a random token, compare and delete (Z4, CC-02, CC-04).

use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::{AssignLock, LockToken};
use kefu_core::{StoreFault, UserId};

use crate::link::Link;
use crate::script::Script;

static UNLOCK: Script = Script::new("unlock", include_str!("lua/unlock.lua"));

/// [`AssignLock`] in Redis.
///
/// A call whose answer was lost may have taken the lock. It is not asked again; the lock dies by
/// itself, and the caller goes on without it.
#[derive(Debug)]
pub(crate) struct RedisAssignLock {
    link: Link,
}

impl RedisAssignLock {
    pub(crate) const fn new(link: Link) -> Self {
        Self { link }
    }
}

#[async_trait]
impl AssignLock for RedisAssignLock {
    async fn try_acquire(
        &self,
        user: &UserId,
        ttl: Duration,
    ) -> Result<Option<LockToken>, StoreFault> {
        let token: u64 = rand::random();
        let key = self.link.keys().assign_lock(user);
        let taken = self.link.set_absent("lock", key, token.to_string(), ttl).await?;
        Ok(taken.then_some(LockToken(token)))
    }

    async fn release(&self, user: &UserId, token: LockToken) -> Result<(), StoreFault> {
        let keys = vec![self.link.keys().assign_lock(user)];
        self.link.run(&UNLOCK, keys, vec![token.0.to_string()]).await
    }
}
