//! The wire between nodes over publish and subscribe: at most once (N1, N3).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fred::prelude::{Builder, Error, ErrorKind, PubsubInterface};
use futures_util::future::try_join_all;
use kefu_core::{NodeName, StoreFault};
use kefu_desk::{Audience, Heard, NodeBus, NodeMessage};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::Connection;
use crate::error::store_fault;
use crate::key::Keys;
use crate::subscription::Subscription;
use crate::{ConnectError, wire};

/// What a subscriber may leave unread before the connection's own queue fills, and then overflows.
const HEARD: usize = 1_024;

/// [`NodeBus`] over Redis.
pub(crate) struct RedisNodeBus {
    node: NodeName,
    keys: Keys,
    builder: Builder,
    /// One connection for everything said: several would not keep its order.
    publisher: Connection,
    /// Whether something said may not have arrived, which the others must hear before what comes next.
    owes_gap: AtomicBool,
    command_timeout: Duration,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl RedisNodeBus {
    pub(crate) fn start(
        options: &crate::RedisOptions,
        builder: Builder,
        tracker: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Self, ConnectError> {
        let client = builder.build().map_err(|_| ConnectError::Url)?;
        let publisher = Connection::keep("publish", client, tracker, stop.clone());
        Ok(Self {
            node: options.node.clone(),
            keys: Keys::new(&options.key_prefix),
            builder,
            publisher,
            owes_gap: AtomicBool::new(false),
            command_timeout: options.command_timeout,
            tracker: tracker.clone(),
            stop: stop.clone(),
        })
    }

    pub(crate) const fn publisher(&self) -> &Connection {
        &self.publisher
    }

    fn frame(&self, message: &NodeMessage) -> Result<String, StoreFault> {
        wire::encode(&self.node, message).map_err(StoreFault::internal)
    }

    fn channels_of(&self, to: &BTreeSet<NodeName>) -> impl Iterator<Item = String> {
        let others = to.iter().filter(|node| **node != self.node);
        others.map(|node| self.keys.node_channel(node))
    }

    /// Publishes frames to their channels, in this order, in one go.
    async fn publish(&self, frames: Vec<(String, String)>) -> Result<(), StoreFault> {
        if frames.is_empty() {
            return Ok(());
        }
        let owed = Owed::take(&self.owes_gap);
        let written = self.write(frames, owed.was_owed).await;
        match written {
            Ok(()) => {
                owed.settle();
                Ok(())
            }
            Err(error) => Err(store_fault("publish", &error)),
        }
    }

    async fn write(&self, frames: Vec<(String, String)>, gap_first: bool) -> Result<(), Error> {
        let client = self.publisher.client()?;
        let lost = wire::encode_lost(&self.node)
            .map_err(|error| Error::new(ErrorKind::Parse, error.to_string()))?;
        let gap = gap_first.then(|| (self.keys.common_channel(), lost));
        let all = gap.into_iter().chain(frames);
        // Each is queued when it is first asked for its answer, which is in this order. A pipeline of
        // the library would do the same, but is also written long after its time limit.
        try_join_all(all.map(|(channel, text)| client.publish::<i64, _, _>(channel, text))).await?;
        Ok(())
    }
}

#[async_trait]
impl NodeBus for RedisNodeBus {
    async fn say(&self, words: &[(Audience, NodeMessage)]) -> Result<(), StoreFault> {
        let mut frames = Vec::with_capacity(words.len());
        for (audience, word) in words {
            let frame = self.frame(word)?;
            match audience {
                Audience::Nodes(to) => {
                    frames.extend(self.channels_of(to).map(|channel| (channel, frame.clone())));
                }
                Audience::Others => frames.push((self.keys.common_channel(), frame)),
            }
        }
        self.publish(frames).await
    }

    async fn send(&self, to: &BTreeSet<NodeName>, message: &NodeMessage) -> Result<(), StoreFault> {
        let frame = self.frame(message)?;
        let frames = self.channels_of(to).map(|channel| (channel, frame.clone()));
        self.publish(frames.collect()).await
    }

    async fn broadcast(&self, message: &NodeMessage) -> Result<(), StoreFault> {
        self.publish(vec![(self.keys.common_channel(), self.frame(message)?)]).await
    }

    async fn say_gap(&self) -> Result<(), StoreFault> {
        let lost = wire::encode_lost(&self.node).map_err(StoreFault::internal)?;
        self.publish(vec![(self.keys.common_channel(), lost)]).await
    }

    async fn subscribe(&self) -> mpsc::Receiver<Heard> {
        let (out, heard) = mpsc::channel(HEARD);
        let Ok(client) = self.builder.build() else { return heard };
        let (ready, is_ready) = oneshot::channel();
        let channels = [self.keys.node_channel(&self.node), self.keys.common_channel()];
        let subscription = Subscription::new(&self.node, channels, client.clone(), out);
        let end = self.stop.child_token();
        Connection::keep("subscribe", client, &self.tracker, end.clone());
        self.tracker.spawn(async move {
            end.run_until_cancelled(subscription.listen(ready)).await;
            end.cancel();
        });
        // Whoever says something after this is heard, if Redis is there. If not, the first thing
        // heard will be a gap.
        let _ = timeout(self.command_timeout, is_ready).await;
        heard
    }
}

impl fmt::Debug for RedisNodeBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNodeBus").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The debt of a gap while something is being said. Unless settled it stands again, also when the
/// caller was dropped in the middle.
struct Owed<'a> {
    debt: &'a AtomicBool,
    was_owed: bool,
    is_settled: bool,
}

impl<'a> Owed<'a> {
    fn take(debt: &'a AtomicBool) -> Self {
        Self { debt, was_owed: debt.swap(false, Ordering::AcqRel), is_settled: false }
    }

    fn settle(mut self) {
        self.is_settled = true;
    }
}

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.debt.store(true, Ordering::Release);
        }
    }
}
