//! The wire between nodes of one process, which can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kefu_core::{NodeName, StoreFault};
use kefu_desk::{Heard, NodeBus, NodeMessage};
use tokio::sync::mpsc;

/// Words waiting for one node; beyond it the node misses some and hears a gap.
const ROOM: usize = 1_024;

/// All nodes on one wire. Clones are the same wire.
#[derive(Clone, Default)]
pub struct MemoryNodes {
    wire: Arc<Mutex<BTreeMap<NodeName, Listener>>>,
}

/// One node that listens.
struct Listener {
    queue: mpsc::Sender<Heard>,
    /// Words to and from this node are lost.
    cut: bool,
    /// It missed something and was not told yet.
    missed: bool,
    /// It said something that was lost: whoever hears it next hears of that first.
    owes_gap: bool,
}

impl MemoryNodes {
    /// A wire that nobody listens to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The end of the wire that `node` holds.
    #[must_use]
    pub fn node(&self, node: NodeName) -> Arc<MemoryNodeBus> {
        Arc::new(MemoryNodeBus { nodes: self.clone(), node })
    }

    /// From now on nothing reaches `node`, and what it says fails, as without Redis (N5).
    pub fn cut(&self, node: &NodeName) {
        if let Some(listener) = self.wire().get_mut(node) {
            listener.cut = true;
        }
    }

    /// Connects `node` again; it hears a gap.
    pub fn mend(&self, node: &NodeName) {
        if let Some(listener) = self.wire().get_mut(node) {
            (listener.cut, listener.missed) = (false, true);
            listener.tell_gap();
        }
    }

    /// `None`: only that something was not said.
    fn say(
        &self,
        from: &NodeName,
        to: Option<&BTreeSet<NodeName>>,
        word: Option<&NodeMessage>,
    ) -> bool {
        let mut wire = self.wire();
        let mut owed = word.is_none();
        if let Some(speaker) = wire.get_mut(from) {
            if speaker.cut {
                speaker.owes_gap = true;
                return false;
            }
            owed |= std::mem::take(&mut speaker.owes_gap);
        }
        for (_, listener) in wire.iter_mut().filter(|(node, _)| owed && *node != from) {
            listener.missed = true;
            listener.tell_gap();
        }
        let Some(word) = word else { return true };
        for (node, listener) in wire.iter_mut() {
            if node != from && to.is_none_or(|to| to.contains(node)) {
                listener.hear(word);
            }
        }
        true
    }

    fn wire(&self) -> MutexGuard<'_, BTreeMap<NodeName, Listener>> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.wire().keys()).finish()
    }
}

impl Listener {
    fn hear(&mut self, word: &NodeMessage) {
        if self.cut {
            return;
        }
        // Only with room for more than one word: else every place that comes free is taken by a gap.
        if self.missed && self.queue.capacity() > ROOM / 2 {
            self.tell_gap();
        }
        if self.missed {
            return;
        }
        // The last place is for the gap, so that it is heard even if nothing more is said. What is lost
        // from now on is lost after it, which is another gap.
        let word = if self.queue.capacity() > 1 {
            Heard::Message(word.clone())
        } else {
            self.missed = true;
            Heard::Gap
        };
        if self.queue.try_send(word).is_err() {
            self.missed = true;
        }
    }

    /// A gap is heard before anything later.
    fn tell_gap(&mut self) {
        if self.missed && self.queue.try_send(Heard::Gap).is_ok() {
            self.missed = false;
        }
    }
}

/// One node's end of a [`MemoryNodes`].
#[derive(Debug)]
pub struct MemoryNodeBus {
    nodes: MemoryNodes,
    node: NodeName,
}

#[async_trait]
impl NodeBus for MemoryNodeBus {
    async fn send(&self, to: &BTreeSet<NodeName>, message: &NodeMessage) -> Result<(), StoreFault> {
        answer(self.nodes.say(&self.node, Some(to), Some(message)))
    }

    async fn broadcast(&self, message: &NodeMessage) -> Result<(), StoreFault> {
        answer(self.nodes.say(&self.node, None, Some(message)))
    }

    async fn say_gap(&self) -> Result<(), StoreFault> {
        answer(self.nodes.say(&self.node, None, None))
    }

    async fn subscribe(&self) -> mpsc::Receiver<Heard> {
        let (queue, receiver) = mpsc::channel(ROOM);
        let listener = Listener { queue, cut: false, missed: false, owes_gap: false };
        self.nodes.wire().insert(self.node.clone(), listener);
        receiver
    }
}

fn answer(said: bool) -> Result<(), StoreFault> {
    if said { Ok(()) } else { Err(StoreFault::unavailable("the wire between nodes is cut")) }
}
