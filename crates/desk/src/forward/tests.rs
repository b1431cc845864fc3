//! Whom the words to other nodes look up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{MsgId, NodeName, Person, Seq, SessionId, StoreFault, UserId};
use kefu_messaging::MessageStatus;
use kefu_presence::{Lease, PresenceStore};
use tokio::sync::mpsc;

use super::{Forward, Outgoing};
use crate::watch::Watchers;
use crate::{Heard, NoConnections, NodeBus, NodeMessage, Relayed};

/// Everybody is on one other node; notes who was asked for, and what was said.
#[derive(Default)]
struct Others {
    asked: Mutex<Vec<Vec<Person>>>,
    said: Mutex<usize>,
}

#[async_trait]
impl PresenceStore for Others {
    async fn acquire(
        &self,
        _: &Person,
        _: &Lease,
        _: Duration,
        _: usize,
    ) -> Result<Option<usize>, StoreFault> {
        Ok(Some(1))
    }

    async fn renew(&self, _: &Person, _: &Lease, _: Duration) -> Result<(), StoreFault> {
        Ok(())
    }

    async fn release(&self, _: &Person, _: &Lease) -> Result<usize, StoreFault> {
        Ok(0)
    }

    async fn count(&self, _: &Person) -> Result<usize, StoreFault> {
        Ok(1)
    }

    async fn list_nodes(&self, people: &[Person]) -> Result<Vec<BTreeSet<NodeName>>, StoreFault> {
        self.asked.lock().expect("no panic").push(people.to_vec());
        Ok(people.iter().map(|_| BTreeSet::from([node("b")])).collect())
    }

    async fn age(&self) -> Result<Duration, StoreFault> {
        Ok(Duration::MAX)
    }
}

#[async_trait]
impl NodeBus for Others {
    async fn send(&self, _: &BTreeSet<NodeName>, _: &NodeMessage) -> Result<(), StoreFault> {
        *self.said.lock().expect("no panic") += 1;
        Ok(())
    }

    async fn broadcast(&self, _: &NodeMessage) -> Result<(), StoreFault> {
        Ok(())
    }

    async fn say_gap(&self) -> Result<(), StoreFault> {
        Ok(())
    }

    async fn subscribe(&self) -> mpsc::Receiver<Heard> {
        mpsc::channel(1).1
    }
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).expect("valid")
}

#[tokio::test]
async fn nobody_is_looked_up_twice_for_the_pushes_of_one_moment() {
    let others = Arc::new(Others::default());
    let watchers = Arc::new(Watchers::new(Arc::new(NoConnections)));
    let forward = Forward::new(node("a"), others.clone(), others.clone(), watchers);
    let (session_id, person) = (
        SessionId::new(1).expect("positive"),
        ["u1", "u2"].map(|id| Person::User(UserId::new(id).expect("valid"))),
    );
    let acks = (1..=9).map(|seq| {
        let (msg_id, status) = (MsgId::new(seq).expect("positive"), MessageStatus::Read);
        (&person[0], Relayed::PeerAck { session_id, msg_id, seq: Seq(seq), status })
    });
    let read = (&person[1], Relayed::Read { session_id, seq: Seq(9) });
    let pushes =
        acks.chain([read]).map(|(to, push)| Outgoing { to: to.clone(), push, trace_id: None });
    forward.relay(&pushes.collect::<Vec<_>>()).await.expect("said");
    assert_eq!(*others.asked.lock().expect("no panic"), [person.to_vec()], "N1: each once");
    assert_eq!(*others.said.lock().expect("no panic"), 10, "each push has its word");
}
