//! The ledger: what the ports show of a store, and what must hold of it whatever happened before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kefu_assignment::{DecisionRecord, Outcome};
use kefu_core::snowflake::timestamp_of;
use kefu_core::{AdminId, MsgId, PageLimit, Seq, SessionId, StoreFault};
use kefu_desk::Stores;
use kefu_messaging::{Message, Window};
use kefu_presence::Agent;
use kefu_queue::{Line, ahead};
use kefu_session::{Session, Status};

/// Committed rows, collected while nothing writes.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// The sessions asked for that exist.
    pub sessions: Vec<Session>,
    /// The agents asked for that exist, with what `list_owned` says.
    pub agents: Vec<(Agent, Vec<Session>)>,
    /// Every message of each session, in the order of `history`.
    pub messages: BTreeMap<SessionId, Vec<Message>>,
    /// Every decision record of each session, as listed.
    pub records: BTreeMap<SessionId, Vec<DecisionRecord>>,
    /// The whole line.
    pub line: Option<Line>,
}

/// One broken promise, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ledger {
    /// Reads the given sessions and agents. The line is read whole.
    ///
    /// # Errors
    /// The first fault of a port.
    pub async fn collect(
        stores: &Stores,
        sessions: impl IntoIterator<Item = SessionId> + Send,
        agents: impl IntoIterator<Item = AdminId> + Send,
    ) -> Result<Self, StoreFault> {
        let sessions: BTreeSet<_> = sessions.into_iter().collect();
        let agents: BTreeSet<_> = agents.into_iter().collect();
        let mut ledger = Self::default();
        for id in sessions {
            ledger.sessions.extend(stores.sessions.find(id).await?);
            ledger.messages.insert(id, history(stores, id).await?);
            ledger.records.insert(id, stores.assignments.list_records(id).await?);
        }
        for admin in agents {
            let owned = stores.sessions.list_owned(&admin).await?;
            let agent = stores.agents.find(&admin).await?;
            ledger.agents.extend(agent.map(|agent| (agent, owned)));
        }
        ledger.line = Some(stores.line.front(u32::MAX >> 1).await?);
        Ok(ledger)
    }

    /// Everything that does not hold.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        found.extend(self.sessions.iter().flat_map(check_state));
        found.extend(check_one_open(&self.sessions));
        found.extend(self.agents.iter().flat_map(|(agent, owned)| check_load(agent, owned)));
        found.extend(self.check_owners());
        found.extend(self.sessions.iter().flat_map(|session| self.check_session(session)));
        found.extend(self.line.iter().flat_map(|line| self.check_line(line)));
        found
    }

    /// Fails with every violation listed.
    ///
    /// # Panics
    /// When there is any.
    pub fn assert_sound(&self) {
        let found: Vec<_> = self.violations().iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "the ledger does not add up:\n{}", found.join("\n"));
    }

    /// What clients were acknowledged against what is stored: nothing missing, nothing changed.
    #[must_use]
    pub fn missing_acks<'a>(
        &self,
        acked: impl IntoIterator<Item = &'a Arc<Message>>,
    ) -> Vec<Violation> {
        acked.into_iter().filter_map(|ack| self.missing_ack(ack)).collect()
    }

    fn missing_ack(&self, ack: &Message) -> Option<Violation> {
        let stored = self
            .messages
            .get(&ack.session_id)
            .and_then(|messages| messages.iter().find(|message| message.msg_id == ack.msg_id));
        let same =
            stored.is_some_and(|stored| Message { status: ack.status, ..stored.clone() } == *ack);
        (!same).then(|| Violation(format!("acked {ack:?} but stored {stored:?}")))
    }

    /// `list_owned` and the sessions' own rows name the same owners.
    fn check_owners(&self) -> Vec<Violation> {
        let mut owners: BTreeMap<SessionId, Vec<&AdminId>> = BTreeMap::new();
        for (agent, owned) in &self.agents {
            for session in owned {
                owners.entry(session.id).or_default().push(&agent.info.admin_id);
            }
        }
        let twice = owners.iter().filter(|(_, admins)| admins.len() > 1);
        let mut found: Vec<_> = twice
            .map(|(id, admins)| Violation(format!("session {id} is owned by {admins:?}")))
            .collect();
        let known: BTreeSet<_> =
            self.agents.iter().map(|(agent, _)| &agent.info.admin_id).collect();
        for session in self.sessions.iter().filter(|session| session.status == Status::Active) {
            let owner = session.admin_id.as_ref().filter(|owner| known.contains(owner));
            let listed = owners.get(&session.id).and_then(|admins| admins.first());
            if let Some(owner) = owner
                && listed != Some(&owner)
            {
                found.push(Violation(format!("session {} of {owner} is not listed", session.id)));
            }
        }
        found
    }

    fn check_session(&self, session: &Session) -> Vec<Violation> {
        let messages = self.messages.get(&session.id).map_or(&[][..], Vec::as_slice);
        let records = self.records.get(&session.id).map_or(&[][..], Vec::as_slice);
        let mut found = check_messages(session, messages);
        found.extend(check_records(session, records));
        found
    }

    fn check_line(&self, line: &Line) -> Vec<Violation> {
        let mut found = Vec::new();
        if line.total as usize != line.sessions.len() {
            let (total, len) = (line.total, line.sessions.len());
            found.push(Violation(format!("the line says {total} and holds {len}")));
        }
        if !line.sessions.is_sorted_by(|left, right| ahead(left, right).is_lt()) {
            found.push(Violation("the line is not in order (Q1)".to_owned()));
        }
        let listed: BTreeSet<_> = line.sessions.iter().map(|session| session.id).collect();
        for session in &self.sessions {
            let waits = session.status == Status::Waiting;
            if waits != listed.contains(&session.id) {
                let id = session.id;
                found.push(Violation(format!("session {id} waits: {waits}; in line: {}", !waits)));
            }
        }
        found
    }
}

/// Waiting has no owner, active has one, ended has a time and an author.
#[must_use]
pub fn check_state(session: &Session) -> Vec<Violation> {
    let sound = match session.status {
        Status::Waiting => session.admin_id.is_none() && session.ended_at.is_none(),
        Status::Active => session.admin_id.is_some() && session.ended_at.is_none(),
        Status::Ended => session.ended_at.is_some() && session.ended_by.is_some(),
    };
    if sound { Vec::new() } else { vec![Violation(format!("impossible state: {session:?}"))] }
}

/// A user has at most one open session (S1).
#[must_use]
pub fn check_one_open(sessions: &[Session]) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    sessions
        .iter()
        .filter(|session| session.is_open() && !seen.insert(&session.user.user_id))
        .map(|session| Violation(format!("{} has two open sessions", session.user.user_id)))
        .collect()
}

/// The load equals the count and is within the cap (2.6, CC-03).
///
/// A cap lowered below the present load is legal, so callers whose test does that leave this out.
#[must_use]
pub fn check_load(agent: &Agent, owned: &[Session]) -> Vec<Violation> {
    let (id, load) = (&agent.info.admin_id, agent.active_sessions);
    let mut found = Vec::new();
    if load as usize != owned.len() {
        found.push(Violation(format!("{id} has load {load} and owns {}", owned.len())));
    }
    if load > agent.max_sessions {
        found.push(Violation(format!("{id} has load {load} above cap {}", agent.max_sessions)));
    }
    if owned.iter().any(|session| !session.is_owned_by(id)) {
        found.push(Violation(format!("{id} lists sessions of others")));
    }
    found
}

/// `seq` is 1, 2, 3 …; ids and times rise with it; keys are unique; the session knows its tip (T1, T2).
#[must_use]
pub fn check_messages(session: &Session, messages: &[Message]) -> Vec<Violation> {
    let id = session.id;
    let mut found = Vec::new();
    let mut report = |holds: bool, what: &str| {
        if !holds {
            found.push(Violation(format!("session {id}: {what}")));
        }
    };
    let gapless = messages.iter().zip(1..).all(|(message, seq)| message.seq == Seq(seq));
    report(gapless, "seq is not 1, 2, 3 …");
    report(messages.is_sorted_by(|a, b| a.msg_id < b.msg_id), "ids do not rise with seq");
    report(messages.is_sorted_by_key(|m| m.create_time), "times do not rise with seq");
    let timed = messages.iter().all(|m| m.create_time == timestamp_of(m.msg_id.get()));
    report(timed, "a time is not its id's millisecond");
    let mut keys = BTreeSet::new();
    let unique = messages.iter().all(|m| keys.insert((&m.sender, &m.client_msg_id)));
    report(unique, "a key is stored twice");
    report(messages.iter().all(|m| m.session_id == id), "holds another session's message");
    let tip: Option<(Seq, MsgId)> = messages.last().map(|m| (m.seq, m.msg_id));
    let known = session.last_msg_id.map(|msg| (session.last_seq, msg));
    report(tip == known, "its tip is not its last message");
    found
}

/// Records are in order, end with the present owner, and one end is one record (S4).
#[must_use]
pub fn check_records(session: &Session, records: &[DecisionRecord]) -> Vec<Violation> {
    let id = session.id;
    let mut found = Vec::new();
    let mut report = |holds: bool, what: &str| {
        if !holds {
            found.push(Violation(format!("session {id}: {what}")));
        }
    };
    report(records.is_sorted_by(|a, b| a.id < b.id), "records are not listed by id");
    let ends = records.iter().filter(|record| record.outcome == Outcome::Ended).count();
    report(ends == usize::from(session.status == Status::Ended), "ends and end records differ");
    let owner = records.last().and_then(|record| record.admin_id.clone());
    report(owner == session.admin_id, "the last record names another owner");
    let chained = records.windows(2).all(|pair| match pair {
        [before, after] => before.admin_id == after.from,
        _ => true,
    });
    report(chained, "a record does not begin where the one before ended");
    found
}

async fn history(stores: &Stores, session: SessionId) -> Result<Vec<Message>, StoreFault> {
    let mut messages: Vec<Message> = Vec::new();
    loop {
        let after = messages.last().map_or(Seq(0), |message| message.seq);
        let page = stores.messages.history(session, Window::After(after), PageLimit::MAX).await?;
        messages.extend(page.items);
        if !page.has_more {
            return Ok(messages);
        }
    }
}

#[cfg(test)]
mod tests {
    use kefu_core::{AssignmentId, Balance, Timestamp};
    use kefu_session::UserProfile;

    use super::*;
    use crate::build;

    fn session() -> Session {
        Session {
            id: SessionId::new(1).unwrap(),
            user: UserProfile {
                user_id: build::user("u", 0).user_id,
                name: "u".into(),
                avatar: None,
                vip: None,
            },
            status: Status::Active,
            admin_id: Some(build::admin("a")),
            source: String::new(),
            balance: Some(Balance(0)),
            priority: 0,
            last_seq: Seq(0),
            last_msg_id: None,
            version: 1,
            started_at: Timestamp(0),
            queued_at: Timestamp(0),
            assigned_at: None,
            ended_at: None,
            ended_by: None,
            rating: None,
            noticed_at: None,
        }
    }

    fn texts(found: &[Violation]) -> String {
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_wrong_load_and_an_exceeded_cap_are_found() {
        let agent = Agent { active_sessions: 2, ..build::agent_row("a", 1) };
        let found = check_load(&agent, &[session()]);
        assert!(texts(&found).contains("owns 1") && texts(&found).contains("above cap"));
    }

    #[test]
    fn an_owner_who_is_not_listed_and_two_owners_are_found() {
        let mut ledger = Ledger { sessions: vec![session()], ..Ledger::default() };
        ledger.agents.push((build::agent_row("a", 1), Vec::new()));
        assert!(texts(&ledger.check_owners()).contains("not listed"));
        ledger.agents = vec![
            (build::agent_row("a", 1), vec![session()]),
            (build::agent_row("b", 1), vec![session()]),
        ];
        assert!(texts(&ledger.check_owners()).contains("owned by"));
    }

    #[test]
    fn a_waiting_session_with_an_owner_is_found() {
        let broken = Session { status: Status::Waiting, ..session() };
        assert_eq!(check_state(&broken).len(), 1);
        assert_eq!(check_state(&session()), []);
    }

    #[test]
    fn two_ends_of_one_session_are_found() {
        let ended = Session { status: Status::Ended, ..session() };
        let record = |id, from: Option<AdminId>, outcome| DecisionRecord {
            id: AssignmentId::new(id).unwrap(),
            from,
            outcome,
            ..build::record(
                &kefu_core::ManualIds::default(),
                ended.id,
                ended.admin_id.as_ref(),
                Timestamp(0),
            )
        };
        let a = ended.admin_id.clone();
        let good = [record(1, None, Outcome::Assigned), record(2, a.clone(), Outcome::Ended)];
        assert_eq!(check_records(&ended, &good), []);
        let twice = [good[0].clone(), good[1].clone(), record(3, a, Outcome::Ended)];
        assert!(texts(&check_records(&ended, &twice)).contains("ends"));
    }
}
