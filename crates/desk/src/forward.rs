//! From this node to the others: committed events to where the people concerned are (N1).

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{AdminId, ConnId, NodeName, Person, StoreFault, UserId};
use kefu_events::{Envelope, Event, Handler, HandlerError};
use kefu_messaging::{Fresh, Push, Pusher, Reach, Side};
use kefu_presence::PresenceStore;

use crate::{Connections, NodeBus, NodeMessage, Relayed};

/// Says to other nodes what their people have to hear. Nobody hears it twice from here: what comes from
/// another node is never said again (N3).
#[derive(Clone)]
pub(crate) struct Forward {
    node: NodeName,
    presence: Arc<dyn PresenceStore>,
    nodes: Arc<dyn NodeBus>,
}

impl Forward {
    pub(crate) const NAME: &'static str = "forward";

    pub(crate) fn new(
        node: NodeName,
        presence: Arc<dyn PresenceStore>,
        nodes: Arc<dyn NodeBus>,
    ) -> Self {
        Self { node, presence, nodes }
    }

    async fn say(&self, envelope: &Envelope) -> Result<(), StoreFault> {
        let message = envelope.attachment::<Fresh>().map(|fresh| Arc::clone(&fresh.message));
        let word = NodeMessage::Event { envelope: envelope.clone(), message };
        match &envelope.event {
            Event::MessageStored { user_id, admin_id, .. } => {
                self.send(&people(user_id, admin_id.as_ref()), &word).await
            }
            // Few, and each changes the line that every console sees.
            Event::SessionOpened { .. }
            | Event::SessionAssigned { .. }
            | Event::SessionRequeued { .. }
            | Event::SessionEnded { .. }
            | Event::AgentChanged { .. } => self.nodes.broadcast(&word).await,
            Event::SessionRated { .. } => Ok(()),
        }
    }

    /// To the other nodes on which any of `people` is connected.
    async fn send(&self, people: &[Person], word: &NodeMessage) -> Result<(), StoreFault> {
        let of_each = self.presence.list_nodes(people).await?;
        let mut nodes: BTreeSet<NodeName> = of_each.into_iter().flatten().collect();
        nodes.remove(&self.node);
        if nodes.is_empty() {
            return Ok(());
        }
        self.nodes.send(&nodes, word).await
    }

    async fn relay(&self, to: &Person, push: Relayed) {
        let word = NodeMessage::Push { to: to.clone(), push };
        if let Err(fault) = self.send(std::slice::from_ref(to), &word).await {
            lost(&fault);
        }
    }
}

fn people(user: &UserId, admin: Option<&AdminId>) -> Vec<Person> {
    let agent = admin.cloned().map(Person::Agent);
    [Person::User(user.clone())].into_iter().chain(agent).collect()
}

fn lost(fault: &StoreFault) {
    metrics::counter!("kefu_forward_lost_total").increment(1);
    tracing::debug!(%fault, "not said to other nodes");
}

#[async_trait]
impl Handler for Forward {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Never fails: without the bus the event counts as said, and other nodes find what they missed by
    /// themselves when it comes back (N4, M5, N5). Waiting here would hold up everybody behind.
    async fn handle(&self, envelope: &Envelope) -> Result<(), HandlerError> {
        if let Err(fault) = self.say(envelope).await {
            lost(&fault);
        }
        Ok(())
    }
}

/// Pushes to a person's connections here, and what no event stands for also to those elsewhere.
pub(crate) struct Routed {
    here: Arc<dyn Connections>,
    elsewhere: Forward,
}

impl Routed {
    pub(crate) const fn new(here: Arc<dyn Connections>, elsewhere: Forward) -> Self {
        Self { here, elsewhere }
    }
}

#[async_trait]
impl Pusher for Routed {
    async fn push(&self, to: &Person, push: &Push, except: Option<ConnId>) -> Reach {
        let reach = self.here.push(to, push, except).await;
        if let Some(relayed) = Relayed::of(push) {
            self.elsewhere.relay(to, relayed).await;
        }
        reach
    }

    async fn push_to_consoles(&self, push: &Push) {
        self.here.push_to_consoles(push).await;
    }
}

impl Relayed {
    /// What travels by itself. Everything else is made from its event on the node it is pushed from.
    fn of(push: &Push) -> Option<Self> {
        match *push {
            Push::PeerAck { session_id, msg_id, seq, status, .. } => {
                Some(Self::PeerAck { session_id, msg_id, seq, status })
            }
            Push::Typing { session_id, is_typing } => Some(Self::Typing { session_id, is_typing }),
            Push::Message { .. }
            | Push::Assigned { .. }
            | Push::Ended { .. }
            | Push::Requeued { .. }
            | Push::OfflineNotice
            | Push::QueuePosition { .. }
            | Push::SessionNew(_)
            | Push::SessionRemoved { .. }
            | Push::QueueList { .. }
            | Push::AgentStatus { .. } => None,
        }
    }
}

impl Relayed {
    /// The push that it was, on the node of the person it is for.
    pub(crate) fn to_push(&self, to: &Person) -> Push {
        let side = match to {
            Person::User(_) => Side::User,
            Person::Agent(_) => Side::Agent,
        };
        match *self {
            Self::PeerAck { session_id, msg_id, seq, status } => {
                Push::PeerAck { session_id, msg_id, seq, status, side }
            }
            Self::Typing { session_id, is_typing } => Push::Typing { session_id, is_typing },
        }
    }
}
