//! The contracts of the coordination ports, of the wire between nodes and of the copies, stamped on
//! both shared servers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_assignment::LoadBoard;
use kefu_core::NodeName;
use kefu_desk::{Coordination, NodeBus};
use kefu_testkit::{CoordinationHarness, LoadBoardHarness, NodeBusHarness};
use tokio::sync::Mutex;

use crate::harness::{Kind, Node, Place};

/// One node.
struct One(Node);

impl One {
    async fn start(kind: Kind) -> Self {
        Self(Node::start_patient(&Place::new(kind), "n1").await)
    }
}

/// Nodes at one place, which live as long as it.
struct Many {
    place: Place,
    nodes: Mutex<Vec<Node>>,
}

impl Many {
    fn new(kind: Kind) -> Self {
        Self { place: Place::new(kind), nodes: Mutex::default() }
    }

    async fn node(&self, name: &NodeName) -> Arc<dyn NodeBus> {
        let node = Node::start_patient(&self.place, name.as_str()).await;
        let bus = node.coordination.nodes();
        self.nodes.lock().await.push(node);
        bus
    }
}

macro_rules! contracts {
    ($name:ident, $kind:expr) => {
        mod $name {
            use super::*;

            struct Alone(One);

            #[async_trait]
            impl CoordinationHarness for Alone {
                async fn start() -> Self {
                    Self(One::start($kind).await)
                }

                fn coordination(&self) -> Coordination {
                    self.0.0.coordination.ports()
                }

                async fn advance(&self, by: Duration) {
                    self.0.0.pass(by);
                }
            }

            #[async_trait]
            impl LoadBoardHarness for Alone {
                async fn start() -> Self {
                    Self(One::start($kind).await)
                }

                fn board(&self) -> Arc<dyn LoadBoard> {
                    self.0.0.coordination.board()
                }
            }

            struct Wired(Many);

            #[async_trait]
            impl NodeBusHarness for Wired {
                async fn start() -> Self {
                    Self(Many::new($kind))
                }

                async fn node(&self, name: &NodeName) -> Arc<dyn NodeBus> {
                    self.0.node(name).await
                }
            }

            kefu_testkit::coordination_contract!(Alone);
            kefu_testkit::load_board_contract!(Alone);
            kefu_testkit::node_bus_contract!(Wired);
        }
    };
}

contracts!(plain, Kind::Plain);
contracts!(clustered, Kind::Clustered);
