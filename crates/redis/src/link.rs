//! The way to Redis for commands: several pipelined connections that fail at once while there is none.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fred::prelude::{
    Client, Expiration, FromValue, KeysInterface, SetOptions, SortedSetsInterface,
};
use kefu_core::StoreFault;

use crate::connection::Connection;
use crate::error::store_fault;
use crate::key::Keys;
use crate::script::Script;

/// Commands to one Redis, under one key prefix. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Link {
    connections: Arc<[Connection]>,
    turn: Arc<AtomicUsize>,
    keys: Keys,
}

impl Link {
    pub(crate) fn new(connections: Vec<Connection>, keys: Keys) -> Self {
        Self { connections: connections.into(), turn: Arc::default(), keys }
    }

    pub(crate) const fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connections.iter().any(Connection::is_up)
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

    /// A connection for one command: the next one in turn that is up.
    fn client(&self, operation: &'static str) -> Result<&Client, StoreFault> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let (before, after) = self.connections.split_at(turn);
        let in_turn = || after.iter().chain(before);
        let next = in_turn().find(|connection| connection.is_up()).unwrap_or(&after[0]);
        next.client().map_err(|error| store_fault(operation, &error))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("keys", &self.keys).finish_non_exhaustive()
    }
}
