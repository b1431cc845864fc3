//! Leases of connections, expiring by Redis' own clock (P1).

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use fred::types::Value;
use kefu_core::{NodeName, Person, StoreFault};
use kefu_presence::{Lease, PresenceStore};

use crate::error::unreadable;
use crate::link::Link;
use crate::script::Script;

static ACQUIRE: Script = Script::new("acquire", include_str!("lua/acquire.lua"));
static RENEW: Script = Script::new("renew", include_str!("lua/renew.lua"));
static RELEASE: Script = Script::new("release", include_str!("lua/release.lua"));
static LIVING: Script = Script::new("living", include_str!("lua/living.lua"));
static AGE: Script = Script::new("age", include_str!("lua/age.lua"));

/// After this long without any sign of a node, leases may have been lost for want of a Redis rather
/// than of a connection, and the age starts anew (P4).
///
/// A connection shows itself every 25 s (P2) and its lease lives for 60 s, so a silence shorter than
/// 35 s loses none. The sweeper asks for the age every second, so an idle install is not silent.
const SILENCE: Duration = Duration::from_secs(20);

/// [`PresenceStore`] in Redis.
#[derive(Debug)]
pub(crate) struct RedisPresence {
    link: Link,
}

impl RedisPresence {
    pub(crate) const fn new(link: Link) -> Self {
        Self { link }
    }

    fn held_keys(&self, person: &Person) -> Vec<String> {
        let keys = self.link.keys();
        let own = [keys.leases(person), keys.latest(person)];
        own.into_iter().chain(keys.online(person)).collect()
    }

    fn granting_keys(&self, person: &Person) -> Vec<String> {
        let since = [self.link.keys().held_since()];
        since.into_iter().chain(self.held_keys(person)).collect()
    }

    /// The live leases of each of `people`, as texts.
    async fn living(&self, people: &[Person]) -> Result<Vec<Vec<String>>, StoreFault> {
        if people.is_empty() {
            return Ok(Vec::new());
        }
        let keys = people.iter().map(|person| self.link.keys().leases(person)).collect();
        let answer: Value = self.link.run(&LIVING, keys, Vec::new()).await?;
        rows(answer).ok_or_else(|| unreadable(LIVING.name))
    }
}

#[async_trait]
impl PresenceStore for RedisPresence {
    async fn acquire(
        &self,
        person: &Person,
        lease: &Lease,
        ttl: Duration,
        limit: usize,
    ) -> Result<Option<usize>, StoreFault> {
        let args = vec![
            text(lease),
            millis(ttl),
            limit.to_string(),
            millis(SILENCE),
            held_by(&lease.node),
        ];
        self.link.run(&ACQUIRE, self.granting_keys(person), args).await
    }

    async fn renew(&self, person: &Person, lease: &Lease, ttl: Duration) -> Result<(), StoreFault> {
        let args = vec![text(lease), millis(ttl), millis(SILENCE)];
        self.link.run(&RENEW, self.granting_keys(person), args).await
    }

    async fn release(&self, person: &Person, lease: &Lease) -> Result<usize, StoreFault> {
        self.link.run(&RELEASE, self.held_keys(person), vec![text(lease)]).await
    }

    async fn count(&self, person: &Person) -> Result<usize, StoreFault> {
        let living = self.living(std::slice::from_ref(person)).await?;
        Ok(living.iter().map(Vec::len).sum())
    }

    async fn list_nodes(&self, people: &[Person]) -> Result<Vec<BTreeSet<NodeName>>, StoreFault> {
        let living = self.living(people).await?;
        let nodes = living.iter().map(|leases| leases.iter().map(|lease| node(lease)).collect());
        nodes.collect::<Option<_>>().ok_or_else(|| unreadable(LIVING.name))
    }

    async fn age(&self) -> Result<Duration, StoreFault> {
        let keys = vec![self.link.keys().held_since()];
        let age = self.link.run(&AGE, keys, vec![millis(SILENCE)]).await?;
        Ok(Duration::from_millis(age))
    }
}

/// `node:conn`; a node's name has no colon.
fn text(lease: &Lease) -> String {
    format!("{}{}", held_by(&lease.node), lease.conn)
}

/// What every lease of a node begins with.
fn held_by(node: &NodeName) -> String {
    format!("{node}:")
}

fn node(lease: &str) -> Option<NodeName> {
    let (node, _) = lease.split_once(':')?;
    NodeName::new(node).ok()
}

fn rows(answer: Value) -> Option<Vec<Vec<String>>> {
    let Value::Array(rows) = answer else { return None };
    rows.into_iter().map(|row| row.convert().ok()).collect()
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}
