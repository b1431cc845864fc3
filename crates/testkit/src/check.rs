//! The ledger: what the ports show of a store, and what must hold of it whatever happened before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kefu_assignment::invariant::{check_cap, check_count, check_owners, check_records};
use kefu_assignment::{DecisionRecord, LoadBoard, SessionCopy};
use kefu_core::{AdminId, PageLimit, Seq, SessionId, StoreFault, UserId};
use kefu_desk::Stores;
use kefu_messaging::invariant::check_messages;
use kefu_messaging::{Message, Window};
use kefu_presence::Agent;
use kefu_queue::Line;
use kefu_queue::invariant::check_line;
use kefu_session::Session;
use kefu_session::invariant::{Violation, check_one_open, check_state};

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
        let mut found = self.violations_but_caps();
        found.extend(self.agents.iter().flat_map(|(agent, _)| check_cap(agent)));
        found
    }

    /// Everything that does not hold, for tests that lower a cap below a load, which is legal.
    #[must_use]
    pub fn violations_but_caps(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        found.extend(self.sessions.iter().flat_map(check_state));
        found.extend(check_one_open(&self.sessions));
        found.extend(self.agents.iter().flat_map(|(agent, owned)| check_count(agent, owned)));
        found.extend(check_owners(&self.agents, &self.sessions));
        found.extend(self.sessions.iter().flat_map(|session| self.check_session(session)));
        found.extend(self.line.iter().flat_map(|line| check_line(line, &self.sessions)));
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

    /// How copies differ from these rows (A1). Meant for a world at rest: whatever is under way differs.
    ///
    /// # Errors
    /// The first fault of the board.
    pub async fn check_board(&self, board: &dyn LoadBoard) -> Result<Vec<Violation>, StoreFault> {
        let mut found = Vec::new();
        for session in &self.sessions {
            let copy = SessionCopy::from(session);
            let owner = board.find_owner(session.id).await?;
            if owner != copy.admin_id {
                found.push(differs(&format!("owner of {}", session.id), &owner, &copy.admin_id));
            }
            let active = board.find_active_session(&copy.user_id).await?;
            let open = self.open_of(&copy.user_id);
            if active != open {
                found.push(differs(&format!("open session of {}", copy.user_id), &active, &open));
            }
        }
        for (agent, _) in &self.agents {
            let (load, row) = (board.find_load(&agent.info.admin_id).await?, agent.active_sessions);
            if load != Some(row) {
                found.push(differs(&format!("load of {}", agent.info.admin_id), &load, &Some(row)));
            }
        }
        let waiting: Vec<_> = self.line.iter().flat_map(|line| &line.sessions).collect();
        let waiting: Vec<_> = waiting.iter().map(|session| session.id).collect();
        let line = board.line(u32::MAX >> 1).await?;
        if line != waiting {
            found.push(differs("line", &line, &waiting));
        }
        Ok(found)
    }

    /// Fails with every difference between copies and rows listed (A1).
    ///
    /// # Panics
    /// When there is any, or the board fails.
    pub async fn assert_board(&self, board: &dyn LoadBoard) {
        let found = self.check_board(board).await.expect("a board that answers");
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "copies are not the rows:\n{}", found.join("\n"));
    }

    /// A user's open session among the collected ones.
    fn open_of(&self, user: &UserId) -> Option<SessionId> {
        let of_user = |session: &&Session| session.is_open() && session.user.user_id == *user;
        self.sessions.iter().find(of_user).map(|session| session.id)
    }

    fn missing_ack(&self, ack: &Message) -> Option<Violation> {
        let stored = self
            .messages
            .get(&ack.session_id)
            .and_then(|messages| messages.iter().find(|message| message.msg_id == ack.msg_id));
        let same =
            stored.is_some_and(|stored| Message { status: ack.status, ..stored.clone() } == *ack);
        (!same).then(|| Violation::new(format!("acked {ack:?} but stored {stored:?}")))
    }

    fn check_session(&self, session: &Session) -> Vec<Violation> {
        let messages = self.messages.get(&session.id).map_or(&[][..], Vec::as_slice);
        let records = self.records.get(&session.id).map_or(&[][..], Vec::as_slice);
        let mut found = check_messages(session, messages);
        found.extend(check_records(session, records));
        found
    }
}

fn differs<T: fmt::Debug>(what: &str, copy: &T, row: &T) -> Violation {
    Violation::new(format!("copy of {what}: {copy:?}, the rows say {row:?}"))
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
    use kefu_assignment::invariant::{check_choice, check_gain, check_quiet};
    use kefu_assignment::{Candidate, Outcome};
    use kefu_core::{AssignmentId, Balance, MsgId, Timestamp};
    use kefu_messaging::invariant::check_growth;
    use kefu_messaging::{MessageStatus, MessageType, Sender};
    use kefu_queue::Place;
    use kefu_queue::invariant::check_place;
    use kefu_session::invariant::check_succession;
    use kefu_session::{Status, UserProfile};

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
        assert!(texts(&check_count(&agent, &[session()])).contains("owns 1"));
        assert!(texts(&check_cap(&agent)).contains("above cap"));
    }

    #[test]
    fn an_owner_who_is_not_listed_and_two_owners_are_found() {
        let mut ledger = Ledger { sessions: vec![session()], ..Ledger::default() };
        ledger.agents.push((build::agent_row("a", 1), Vec::new()));
        assert!(texts(&check_owners(&ledger.agents, &ledger.sessions)).contains("not listed"));
        ledger.agents = vec![
            (build::agent_row("a", 1), vec![session()]),
            (build::agent_row("b", 1), vec![session()]),
        ];
        assert!(texts(&check_owners(&ledger.agents, &ledger.sessions)).contains("owned by"));
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

    #[test]
    fn a_session_that_goes_back_or_outlives_its_end_is_found() {
        let before = Session { version: 2, last_seq: Seq(3), ..session() };
        assert_eq!(check_succession(&before, &before), []);
        let ended = Session { status: Status::Ended, version: 3, ..before.clone() };
        assert_eq!(check_succession(&before, &ended), []);
        let reopened = Session { version: 4, ..before.clone() };
        assert!(texts(&check_succession(&ended, &reopened)).contains("changed after its end"));
        let older = Session { version: 1, last_seq: Seq(2), ..before.clone() };
        let found = texts(&check_succession(&before, &older));
        assert!(found.contains("lost a position") && found.contains("version went back"));
        let late = Session { queued_at: Timestamp(9), version: 3, ..before.clone() };
        assert!(texts(&check_succession(&before, &late)).contains("time it had waited"));
        let silent = Session { source: "app".into(), ..before.clone() };
        assert!(texts(&check_succession(&before, &silent)).contains("under the same version"));
    }

    #[test]
    fn a_message_that_goes_back_changes_or_vanishes_is_found() {
        let with = |status, content: &str| Message {
            msg_id: MsgId::new(1).unwrap(),
            session_id: session().id,
            seq: Seq(1),
            sender: Sender::System,
            client_msg_id: build::key("k"),
            msg_type: MessageType::Text,
            content: content.into(),
            status,
            create_time: Timestamp(0),
        };
        let (failed, read) = (MessageStatus::Failed, MessageStatus::Read);
        assert_eq!(check_growth(&[with(failed, "a")], &[with(read, "a")]), []);
        assert_eq!(check_growth(&[], &[with(read, "a")]), []);
        let back = check_growth(&[with(read, "a")], &[with(failed, "a")]);
        assert!(texts(&back).contains("went back"));
        let rewritten = check_growth(&[with(read, "a")], &[with(read, "b")]);
        assert!(texts(&rewritten).contains("rewritten"));
        assert!(texts(&check_growth(&[with(read, "a")], &[])).contains("gone"));
    }

    #[test]
    fn a_place_that_is_not_the_index_is_found() {
        let line = Line { sessions: vec![session()], total: 1 };
        let id = session().id;
        let place = |position| Some(Place { position, total: 1 });
        assert_eq!(check_place(&line, id, place(1)), []);
        assert_eq!(check_place(&line, id, place(0)).len(), 1);
        assert_eq!(check_place(&line, id, None).len(), 1);
    }

    #[test]
    fn a_choice_past_an_idler_agent_or_beyond_the_cap_is_found() {
        let candidate = |id, load| Candidate { admin_id: build::admin(id), load, max_sessions: 2 };
        let ids = kefu_core::ManualIds::default();
        let owner = build::admin("a");
        let record = |load| DecisionRecord {
            candidates: vec![candidate("a", load), candidate("b", 1)],
            ..build::record(&ids, session().id, Some(&owner), Timestamp(0))
        };
        assert_eq!(check_choice(&record(1)), []);
        let found = texts(&check_choice(&record(2)));
        assert!(found.contains("had no room") && found.contains("past b"));
        let nobody = DecisionRecord { candidates: Vec::new(), ..record(0) };
        assert!(texts(&check_choice(&nobody)).contains("no candidate"));
    }

    #[test]
    fn a_gain_above_the_cap_and_a_lazy_drain_are_found() {
        let with = |load, cap| Agent { active_sessions: load, ..build::agent_row("a", cap) };
        assert_eq!(check_gain(&with(3, 3), &with(2, 1)), [], "a lowered cap");
        assert_eq!(check_gain(&with(1, 1), &with(2, 1)).len(), 1);
        let line = Line { sessions: vec![session()], total: 1 };
        assert_eq!(check_quiet(&line, &[with(1, 1)]), []);
        assert_eq!(check_quiet(&line, &[with(0, 1)]).len(), 1);
    }
}
