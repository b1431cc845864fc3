//! The contracts of the coordination ports, stamped on Redis: on a plain server, and on a node of a
//! Redis Cluster, which refuses any step over two slots.

mod harness;

use std::time::Duration;

use async_trait::async_trait;
use kefu_desk::Coordination;
use kefu_testkit::CoordinationHarness;
use kefu_testkit::server::redis;

use crate::harness::{Node, unique};

struct Plain(Node);

#[async_trait]
impl CoordinationHarness for Plain {
    async fn start() -> Self {
        let url = redis::shared();
        Self(Node::start(&url, &url, unique("cs")).await)
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
        let url = redis::shared_slots();
        let cluster = url.replace("redis://", "redis-cluster://");
        Self(Node::start(&cluster, &url, format!("{{{}}}", unique("cs"))).await)
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
