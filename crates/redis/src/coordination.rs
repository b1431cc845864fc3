//! The coordination ports of one node on Redis.

use std::fmt;
use std::sync::Arc;

use kefu_assignment::LoadBoard;
use kefu_desk::{Coordination, NodeBus};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board::RedisLoadBoard;
use crate::bus::RedisNodeBus;
use crate::key::Keys;
use crate::link::Link;
use crate::lock::RedisAssignLock;
use crate::presence::RedisPresence;
use crate::{ConnectError, RedisOptions, connect};

/// Everything of a node that may be lost (A1), on one Redis. Clones share the connections.
#[derive(Clone)]
pub struct RedisCoordination {
    link: Link,
    presence: Arc<RedisPresence>,
    assign_lock: Arc<RedisAssignLock>,
    board: Arc<RedisLoadBoard>,
    nodes: Arc<RedisNodeBus>,
}

impl RedisCoordination {
    /// Connects, and keeps connected until `stop`; the tasks belong to `tracker`.
    ///
    /// Waits for Redis for one `command_timeout` at most: without it calls fail at once, and they
    /// work as soon as it is there (N5).
    ///
    /// # Errors
    /// [`ConnectError`] for settings that can never work.
    pub async fn connect(
        options: RedisOptions,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> Result<Self, ConnectError> {
        let builder = connect::builder(&options)?;
        let commands = connect::commands(&builder, &options, tracker, &stop)?;
        let nodes = RedisNodeBus::start(&options, builder, tracker, &stop)?;
        let mut all = commands.clone();
        all.push(nodes.publisher().clone());
        if !connect::wait_for_answers(&all, options.command_timeout).await {
            tracing::warn!("redis does not answer, going on without it");
        }
        let link = Link::new(commands, Keys::new(&options.key_prefix));
        Ok(Self {
            presence: Arc::new(RedisPresence::new(link.clone())),
            assign_lock: Arc::new(RedisAssignLock::new(link.clone())),
            board: Arc::new(RedisLoadBoard::new(link.clone())),
            nodes: Arc::new(nodes),
            link,
        })
    }

    /// The ports, as a desk takes them.
    #[must_use]
    pub fn ports(&self) -> Coordination {
        Coordination { presence: self.presence.clone(), assign_lock: self.assign_lock.clone() }
    }

    /// The copies.
    #[must_use]
    pub fn board(&self) -> Arc<dyn LoadBoard> {
        self.board.clone()
    }

    /// The wire to the other nodes.
    #[must_use]
    pub fn nodes(&self) -> Arc<dyn NodeBus> {
        self.nodes.clone()
    }

    /// Whether commands have a connection now: for readiness. Chat goes on without one (N5).
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.link.is_connected()
    }
}

impl fmt::Debug for RedisCoordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCoordination").field("link", &self.link).finish_non_exhaustive()
    }
}
