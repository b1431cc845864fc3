//! The contracts of the coordination ports, stamped on both shared servers.

use std::time::Duration;

use async_trait::async_trait;
use kefu_desk::Coordination;
use kefu_testkit::CoordinationHarness;

use crate::harness::{Kind, Node, Place};

struct Plain(Node);

#[async_trait]
impl CoordinationHarness for Plain {
    async fn start() -> Self {
        Self(Node::start(&Place::new(Kind::Plain), "n1").await)
    }

    fn coordination(&self) -> Coordination {
        self.0.coordination.ports()
    }

    async fn advance(&self, by: Duration) {
        self.0.pass(by).await;
    }
}

struct Clustered(Node);

#[async_trait]
impl CoordinationHarness for Clustered {
    async fn start() -> Self {
        Self(Node::start(&Place::new(Kind::Clustered), "n1").await)
    }

    fn coordination(&self) -> Coordination {
        self.0.coordination.ports()
    }

    async fn advance(&self, by: Duration) {
        self.0.pass(by).await;
    }
}

mod plain {
    use super::Plain;

    kefu_testkit::coordination_contract!(Plain);
}

mod clustered {
    use super::Clustered;

    kefu_testkit::coordination_contract!(Clustered);
}
