//! One node's ear: subscribes again after every loss, and says when something may have been missed.

use std::time::Duration;

use fred::prelude::{Client, ClientLike, Error, EventInterface, PubsubInterface, Server};
use fred::types::Message;
use kefu_core::NodeName;
use kefu_desk::Heard;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::sleep;

use crate::wire::{self, Word};

/// Before subscribing is tried again on a connection that stands.
const RETRY: Duration = Duration::from_millis(200);

/// The receive loop. The client library resubscribes nothing here: it is done by hand, so that the
/// gap is told before anything of the new subscription.
pub(crate) struct Subscription {
    node: NodeName,
    channels: [String; 2],
    client: Client,
    connects: broadcast::Receiver<Server>,
    messages: broadcast::Receiver<Message>,
    out: mpsc::Sender<Heard>,
}

/// Why listening ends: nobody reads any more, or the client was closed.
struct Ended;

impl Subscription {
    /// Over a client that is not connected yet.
    pub(crate) fn new(
        node: &NodeName,
        channels: [String; 2],
        client: Client,
        out: mpsc::Sender<Heard>,
    ) -> Self {
        let (connects, messages) = (client.reconnect_rx(), client.message_rx());
        Self { node: node.clone(), channels, client, connects, messages, out }
    }

    /// Listens until nobody reads any more. `ready` is told when the first subscription stands.
    pub(crate) async fn listen(mut self, ready: oneshot::Sender<()>) {
        let out = self.out.clone();
        tokio::select! {
            _ended = self.hear(ready) => {}
            () = out.closed() => {}
        }
    }

    async fn hear(&mut self, ready: oneshot::Sender<()>) -> Ended {
        let mut ready = Some(ready);
        loop {
            let step = tokio::select! {
                // A new connection first: what it brings comes after the gap.
                biased;
                connect = self.connects.recv() => match connect {
                    Ok(_) | Err(RecvError::Lagged(_)) => self.connected(ready.take()).await,
                    Err(RecvError::Closed) => return Ended,
                },
                message = self.messages.recv() => match message {
                    Ok(message) => self.take(&message).await,
                    Err(RecvError::Lagged(_)) => self.gap("lag").await,
                    Err(RecvError::Closed) => return Ended,
                },
            };
            if let Err(ended) = step {
                return ended;
            }
        }
    }

    /// Subscribes on a new connection. Whoever still waits for the first subscription missed nothing
    /// since it began to wait; everybody else may have.
    async fn connected(&mut self, ready: Option<oneshot::Sender<()>>) -> Result<(), Ended> {
        while let Err(error) = self.subscribe().await {
            tracing::debug!(%error, "subscribing failed");
            tokio::select! {
                connect = self.connects.recv() => if matches!(connect, Err(RecvError::Closed)) {
                    return Err(Ended);
                },
                () = sleep(RETRY) => {}
            }
        }
        if ready.is_some_and(|ready| ready.send(()).is_ok()) {
            return Ok(());
        }
        self.gap("connection").await
    }

    /// The library takes a subscription for done when it is written. Redis answers in order, so an
    /// answer to what was asked after it shows that it stands.
    async fn subscribe(&self) -> Result<(), Error> {
        self.client.subscribe(self.channels.to_vec()).await?;
        self.client.ping::<String>(None).await?;
        Ok(())
    }

    async fn take(&self, message: &Message) -> Result<(), Ended> {
        let text = message.value.as_str().unwrap_or_default();
        match wire::decode(&text) {
            Ok((from, _)) if from == self.node => Ok(()),
            Ok((_, Word::Message(message))) => self.tell(Heard::Message(message)).await,
            Ok((_, Word::Lost)) => self.gap("publisher").await,
            Err(unreadable) => {
                metrics::counter!("kefu_node_bus_skipped_total", "reason" => unreadable.as_str())
                    .increment(1);
                Ok(())
            }
        }
    }

    async fn gap(&self, cause: &'static str) -> Result<(), Ended> {
        metrics::counter!("kefu_node_bus_gaps_total", "cause" => cause).increment(1);
        self.tell(Heard::Gap).await
    }

    /// Waits for room. Meanwhile messages pile up in the library's own queue, whose overflow is the
    /// next gap.
    async fn tell(&self, heard: Heard) -> Result<(), Ended> {
        self.out.send(heard).await.map_err(|_| Ended)
    }
}
