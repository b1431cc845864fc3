//! The names of all keys and channels, and who writes each (semantics.md, "Presence" and N1).

use std::sync::Arc;

use kefu_core::{AdminId, NodeName, Person, SessionId, UserId};

/// Names under one prefix. One install is one prefix.
///
/// A prefix in braces (`{cs}`) is a hash tag: every key then lies in the same slot, which the
/// scripts over several keys need on a Redis Cluster.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: Arc<str>,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// ZSET of all leases of a person: member `node:conn`, score = expiry in ms of Redis' clock.
    pub(crate) fn leases(&self, person: &Person) -> String {
        format!("{}:conns:{person}", self.prefix)
    }

    /// STRING, the person's latest connection `node:conn`.
    pub(crate) fn latest(&self, person: &Person) -> String {
        format!("{}:conn:{person}", self.prefix)
    }

    /// STRING that exists while a lease of the agent does; users have none.
    pub(crate) fn online(&self, person: &Person) -> Option<String> {
        match person {
            Person::User(_) => None,
            Person::Agent(id) => Some(format!("{}:online:agent:{id}", self.prefix)),
        }
    }

    /// STRING, since when leases are held without a loss, in ms of Redis' clock.
    pub(crate) fn held_since(&self) -> String {
        format!("{}:presence:since", self.prefix)
    }

    /// STRING, the owner of an active session.
    pub(crate) fn session_owner(&self, session: SessionId) -> String {
        format!("{}:session:owner:{session}", self.prefix)
    }

    /// STRING, the user's waiting or active session.
    pub(crate) fn active_session(&self, user: &UserId) -> String {
        format!("{}:user:active_session:{user}", self.prefix)
    }

    /// STRING, how many sessions an agent has.
    pub(crate) fn agent_load(&self, admin: &AdminId) -> String {
        format!("{}:agent:load:{admin}", self.prefix)
    }

    /// ZSET of waiting sessions, score = −priority (Q1).
    pub(crate) fn line(&self) -> String {
        format!("{}:queue:pending", self.prefix)
    }

    /// SET of the sessions that the copies hold as open.
    pub(crate) fn open_sessions(&self) -> String {
        format!("{}:copy:open", self.prefix)
    }

    /// STRING, the version of the session row that the copies say.
    pub(crate) fn session_version(&self, session: SessionId) -> String {
        format!("{}:copy:session:{session}", self.prefix)
    }

    /// STRING, the version of the agent row that the copies say.
    pub(crate) fn agent_version(&self, admin: &AdminId) -> String {
        format!("{}:copy:agent:{admin}", self.prefix)
    }

    /// Channel to one node.
    pub(crate) fn node_channel(&self, node: &NodeName) -> String {
        format!("{}:{node}", self.common_channel())
    }

    /// Channel to every node: spec D's class for what concerns customers' messages (N1).
    pub(crate) fn common_channel(&self) -> String {
        format!("{}:channel.customer.message", self.prefix)
    }

    /// STRING, the token of who opens or claims for a user now (Z4).
    pub(crate) fn assign_lock(&self, user: &UserId) -> String {
        format!("{}:lock:assign:{user}", self.prefix)
    }
}

/// Whether every key under `prefix` lies in one slot: what stands in the first braces decides, if it
/// is not empty.
pub(crate) fn has_hash_tag(prefix: &str) -> bool {
    let tag = prefix.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.is_some_and(|(tag, _)| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_design() {
        let keys = Keys::new("cs");
        let user = UserId::new("u1").expect("valid");
        let agent = Person::Agent(AdminId::new("a1").expect("valid"));
        assert_eq!(keys.assign_lock(&user), "cs:lock:assign:u1");
        assert_eq!(keys.leases(&agent), "cs:conns:agent:a1");
        assert_eq!(keys.online(&agent).as_deref(), Some("cs:online:agent:a1"));
        let session = SessionId::new(7).expect("valid");
        assert_eq!(keys.session_owner(session), "cs:session:owner:7");
        assert_eq!(keys.active_session(&user), "cs:user:active_session:u1");
        assert_eq!(keys.agent_load(&AdminId::new("a1").expect("valid")), "cs:agent:load:a1");
        assert_eq!(keys.line(), "cs:queue:pending");
        let node = NodeName::new("n1").expect("valid");
        assert_eq!(keys.node_channel(&node), "cs:channel.customer.message:n1");
        let user = Person::User(user);
        assert_eq!(keys.latest(&user), "cs:conn:user:u1");
        assert_eq!(keys.online(&user), None);
    }

    #[test]
    fn a_hash_tag_stands_in_the_first_braces() {
        assert!(has_hash_tag("{cs}") && has_hash_tag("x{cs}y"));
        for without in ["cs", "{}", "{}{cs}", "{cs", "cs}"] {
            assert!(!has_hash_tag(without), "{without}");
        }
    }
}
