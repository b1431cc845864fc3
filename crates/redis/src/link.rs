//! The way to Redis for commands: several pipelined connections that fail at once while there is none.

use std::fmt;
use std::time::Duration;

use fred::prelude::{
    Client, ClientLike, Error, ErrorKind, Expiration, FromValue, KeysInterface, Pool, SetOptions,
    SortedSetsInterface,
};
use kefu_core::StoreFault;

use crate::error::store_fault;
use crate::key::Keys;
use crate::script::Script;

/// Commands to one Redis, under one key prefix. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Link {
    pool: Pool,
    keys: Keys,
}

impl Link {
    pub(crate) const fn new(pool: Pool, keys: Keys) -> Self {
        Self { pool, keys }
    }

    pub(crate) const fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.pool.clients().iter().any(Client::is_connected)
    }

    /// Runs a script.
    pub(crate) async fn run<R: FromValue>(
        &self,
        script: &Script,
        keys: Vec<String>,
        args: Vec<String>,
    ) -> Result<R, StoreFault> {
        let client = self.client(script.name)?;
        let answer = script.run(client, keys, args).await;
        answer.map_err(|error| store_fault(script.name, &error))
    }

    /// `SET key value PX ttl NX`: whether it was absent.
    pub(crate) async fn set_absent(
        &self,
        operation: &'static str,
        key: String,
        value: String,
        ttl: Duration,
    ) -> Result<bool, StoreFault> {
        let client = self.client(operation)?;
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let expiry = Some(Expiration::PX(ttl));
        let answer: Result<Option<String>, _> =
            client.set(key, value, expiry, Some(SetOptions::NX), false).await;
        answer.map(|set| set.is_some()).map_err(|error| store_fault(operation, &error))
    }

    /// `GET key`.
    pub(crate) async fn get(
        &self,
        operation: &'static str,
        key: String,
    ) -> Result<Option<String>, StoreFault> {
        let answer = self.client(operation)?.get(key).await;
        answer.map_err(|error| store_fault(operation, &error))
    }

    /// The first `limit` members of a sorted set.
    pub(crate) async fn first_of(
        &self,
        operation: &'static str,
        key: String,
        limit: u32,
    ) -> Result<Vec<String>, StoreFault> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let client = self.client(operation)?;
        let answer = client.zrange(key, 0, i64::from(limit) - 1, None, false, None, false).await;
        answer.map_err(|error| store_fault(operation, &error))
    }

    /// A connection for one command. Without one, the command fails at once instead of waiting for
    /// the time limit: whoever waits holds up a visitor (N5).
    fn client(&self, operation: &'static str) -> Result<&Client, StoreFault> {
        let client = self.pool.next_connected();
        if client.is_connected() {
            return Ok(client);
        }
        Err(store_fault(operation, &Error::new(ErrorKind::IO, "not connected")))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("keys", &self.keys).finish_non_exhaustive()
    }
}
