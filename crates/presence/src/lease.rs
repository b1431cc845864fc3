//! Leases of connections: a person is there while at least one of theirs lives (P1).

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{ConnId, NodeName, Person, StoreFault};

/// One connection's claim that its person is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// The node that holds the socket.
    pub node: NodeName,
    /// The connection on that node.
    pub conn: ConnId,
}

/// Leases of all connections.
///
/// # Contract
/// - A lease lives for its `ttl` from the last `acquire` or `renew`; expired leases are never
///   returned or counted, whether or not anything swept them.
/// - `acquire` is atomic with the count and refuses (`None`) what would exceed `limit` on the lease's
///   own node (L2): what another node holds may be left of a process that was killed, and takes no
///   room. Acquiring a lease one holds already renews it.
/// - `renew` re-creates a lease that expired meanwhile: the connection itself is the proof.
/// - `release` is idempotent.
/// - `list_nodes` names the nodes that hold a live lease of the person: where a push must go (N1).
/// - `age` grows with time and starts anew when all leases were lost at once, by whatever cause:
///   nobody is judged by leases that are younger than they live (P4).
///
/// # Errors
/// [`StoreFault::Unavailable`]: callers go on serving the connection (N5).
#[async_trait]
pub trait PresenceStore: Send + Sync {
    /// Adds a lease unless the person has `limit` others on that node; says how many the person has
    /// now, on all nodes.
    async fn acquire(
        &self,
        person: &Person,
        lease: &Lease,
        ttl: Duration,
        limit: usize,
    ) -> Result<Option<usize>, StoreFault>;

    /// Extends a lease.
    async fn renew(&self, person: &Person, lease: &Lease, ttl: Duration) -> Result<(), StoreFault>;

    /// Gives a lease up; says how many the person still has.
    async fn release(&self, person: &Person, lease: &Lease) -> Result<usize, StoreFault>;

    /// How many leases of the person live.
    async fn count(&self, person: &Person) -> Result<usize, StoreFault>;

    /// The nodes of each of `people`, in their order.
    async fn list_nodes(&self, people: &[Person]) -> Result<Vec<BTreeSet<NodeName>>, StoreFault>;

    /// For how long this store has held every lease it was given.
    async fn age(&self) -> Result<Duration, StoreFault>;
}
