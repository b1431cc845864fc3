//! What the people of the house do.

use std::collections::BTreeMap;
use std::time::Duration;

use kefu_core::limit::PAGE;
use kefu_core::{Caller, ConnId, ErrorCode, Page, PageLimit, Person, Seq, SessionId};
use kefu_desk::{Intent, SendRequest};
use kefu_messaging::invariant::check_undelivered;
use kefu_messaging::{Draft, Message, Receipt, Side, Window};
use kefu_proptests::model::visits::{AGENTS, Step, Visits};
use kefu_session::{Session, Status};
use kefu_testkit::build::{key, trace};

use super::{HERE, Scene, admin, agent, takes_part, visitor};

impl Scene {
    pub(super) fn act(&mut self, visits: &Visits, step: Step) {
        match step {
            Step::Connect { visitor, device, consult, position } => {
                self.connect(visitor, device, consult, position);
            }
            Step::Drop(visitor, device) => {
                let conn = self.devices.remove(&(visitor, device)).expect("connected");
                self.house.drop_device(conn);
            }
            Step::Deafen(visitor, device) => self.deafen(self.devices[&(visitor, device)]),
            Step::Say(visitor, device) => self.say(visits, visitor, device, false),
            Step::Repeat(visitor, device) => self.say(visits, visitor, device, true),
            Step::Report(visitor, device) => self.report(self.devices[&(visitor, device)]),
            Step::End(number) => {
                let session = self.open_of(number).expect("open").id;
                let by = visitor(number);
                let ended = self.house.wait(self.house.desk.end(&by, session, HERE, &trace()));
                assert_eq!(ended.expect("ended").status, Status::Ended);
            }
            Step::Intrude(who, whose) => self.intrude(who, whose),
            Step::Come(number) => self.come(number),
            Step::Leave(number) => {
                if let Some(conn) = self.agents.remove(&number) {
                    self.house.drop_device(conn);
                }
            }
            Step::DeafenAgent(number) => {
                if let Some(conn) = self.agents.get(&number) {
                    self.deafen(*conn);
                }
            }
            Step::Answer(number, which) => self.answer(number, which),
            Step::ReportByAgent(number) => {
                if let Some(conn) = self.agents.get(&number) {
                    self.report(*conn);
                }
            }
            Step::Handover(number, which) => {
                let Some(session) = self.owned(number, which) else { return };
                let (by, target) = (agent(number), admin((number + 1) % AGENTS));
                let note = Some("secret".to_owned());
                // Refused when the colleague is away or full; what matters is who is told.
                let desk = &self.house.desk;
                let _ = self.house.wait(desk.transfer(&by, session, &target, note, HERE, &trace()));
            }
            Step::GiveBack(number) => {
                let (by, desk) = (agent(number), &self.house.desk);
                // Refused to an agent who never came.
                let _ = self.house.wait(desk.agent_offline(&by, true, HERE, &trace()));
            }
            Step::Pass(seconds) => self.house.pass(Duration::from_secs(seconds)),
            Step::Restart => {
                self.house.restart();
                self.devices.clear();
                self.agents.clear();
            }
        }
    }

    fn deafen(&mut self, conn: ConnId) {
        self.house.devices.get_mut(&conn).expect("connected").is_deaf = true;
    }

    pub(super) fn open_of(&self, number: usize) -> Option<Session> {
        let Person::User(user) = visitor(number).person() else { unreachable!("a user") };
        self.house.wait(self.house.stores.sessions.find_open(&user)).expect("memory")
    }

    fn owned(&self, number: usize, which: usize) -> Option<SessionId> {
        let owned = self.house.wait(self.house.stores.sessions.list_owned(&admin(number)));
        let owned = owned.expect("memory");
        owned.get(which.checked_rem(owned.len())?).map(|session| session.id)
    }

    pub(super) fn stored(&self, session: SessionId) -> Vec<Message> {
        let (stores, mut all) = (&self.house.stores, Vec::<Message>::new());
        loop {
            let after = Window::After(all.last().map_or(Seq(0), |message| message.seq));
            let page = self.house.wait(stores.messages.history(session, after, PageLimit::MAX));
            let page = page.expect("memory");
            all.extend(page.items);
            if !page.has_more {
                return all;
            }
        }
    }

    /// With a position, the visitor had everything up to two below the last.
    fn connect(&mut self, number: usize, device: usize, consult: bool, position: bool) {
        let intent = if consult { Intent::Consult } else { Intent::Resume };
        let open = self.open_of(number);
        let above = open.as_ref().map(|session| Seq((session.last_seq.0 - 2).max(0)));
        let position = open.as_ref().filter(|_| position).map(|session| session.id).zip(above);
        let (conn, answer) =
            self.house.connect(&visitor(number), intent, position.into_iter().collect());
        self.devices.insert((number, device), conn);
        self.sessions.extend(answer.session_id);
        self.check_answer(number, &answer, position);
        let device = self.house.devices.get_mut(&conn).expect("connected");
        device.since = answer.served;
    }

    fn say(&mut self, visits: &Visits, number: usize, device: usize, again: bool) {
        let text = *visits.visitors[number].texts.last().expect("said");
        let conn = self.devices[&(number, device)];
        let stored = self.send(&visitor(number), conn, None, &format!("v{text}"));
        let stored = stored.expect("stored");
        assert_eq!(stored.0, again, "a repeat and only a repeat is a duplicate");
        self.keep(conn, stored.1);
    }

    fn send(
        &self,
        by: &Caller,
        conn: ConnId,
        session_id: Option<SessionId>,
        text: &str,
    ) -> Result<(bool, Message), ErrorCode> {
        let draft = Draft::Text(text.to_owned());
        let request =
            SendRequest { session_id, client_msg_id: key(text), draft, open_session: None };
        let answer = self.house.wait(async {
            let sent = self.house.desk.send(by, Some(conn), request, &trace());
            sent.map_err(|error| error.code())?.await.map_err(|error| error.code())
        });
        answer.map(|stored| (stored.duplicate, stored.message.as_ref().clone()))
    }

    /// The sender's own connection knows a message by its answer, not by a push.
    fn keep(&mut self, conn: ConnId, message: Message) {
        let device = self.house.devices.get_mut(&conn).expect("connected");
        device.held.entry(message.msg_id).or_insert(message);
    }

    fn report(&mut self, conn: ConnId) {
        let device = &self.house.devices[&conn];
        let caller = device.caller.clone();
        let mine = |message: &Message| match caller.person() {
            Person::User(_) => message.sender.side() == Side::User,
            Person::Agent(_) => message.sender.side() == Side::Agent,
        };
        let others: Vec<_> = device.held.values().filter(|message| !mine(message)).collect();
        let trace = trace();
        for message in others {
            let taken = self.house.desk.acknowledge(
                &caller,
                None,
                message.msg_id,
                Receipt::Delivered,
                false,
                &trace,
            );
            // An agent who lost the session is refused.
            if self.house.wait(taken).is_ok() {
                self.acknowledged.insert(message.msg_id);
            }
        }
    }

    /// Whatever a visitor does with another's session is answered as if it did not exist (A3).
    fn intrude(&self, who: usize, whose: usize) {
        let Some(session) = self.open_of(whose) else { return };
        let (by, id, conn) = (visitor(who), session.id, ConnId(u64::MAX));
        let (desk, trace) = (&self.house.desk, trace());
        let page = desk.history(&by, id, Window::After(Seq(0)), PageLimit::MAX);
        let read = self.house.wait(page).map(drop);
        let typed = self.house.wait(desk.typing(&by, conn, id, true, &trace));
        let ended = self.house.wait(desk.end(&by, id, HERE, &trace)).map(drop);
        let mut answers = vec![read, typed, ended];
        if let Some(message) = self.stored(id).last() {
            let taken = desk.acknowledge(&by, None, message.msg_id, Receipt::Read, true, &trace);
            answers.push(self.house.wait(taken));
        }
        let codes = answers.into_iter().map(|answer| answer.map_err(|error| error.code()));
        let said = self.send(&by, conn, Some(id), "intruder").map(drop);
        let codes: Vec<_> = codes.chain([said]).collect();
        assert!(codes.iter().all(|code| *code == Err(ErrorCode::NotFound)), "let in: {codes:?}");
    }

    fn come(&mut self, number: usize) {
        if !self.agents.contains_key(&number) {
            let (conn, answer) =
                self.house.connect(&agent(number), Intent::Resume, BTreeMap::new());
            self.agents.insert(number, conn);
            let mut owned: Vec<_> = self.sessions_of(&agent(number).person());
            owned.retain(|id| answer.owned.iter().any(|owned| owned.view.session.id == *id));
            let mut all: Vec<_> = owned.into_iter().flat_map(|id| self.stored(id)).collect();
            all.sort_by_key(|message| message.msg_id);
            let page = Page { items: answer.unread, has_more: answer.has_more };
            self.found.extend(check_undelivered(&all, Side::Agent, PAGE as usize, &page));
            self.house.devices.get_mut(&conn).expect("connected").since = answer.served;
        }
        let (by, desk) = (agent(number), &self.house.desk);
        let online = self.house.wait(desk.agent_online(&by, 2, HERE, &trace()));
        online.expect("online");
    }

    fn answer(&mut self, number: usize, which: usize) {
        let Some(conn) = self.agents.get(&number).copied() else { return };
        let Some(session) = self.owned(number, which) else { return };
        self.answers += 1;
        let text = format!("a{}", self.answers);
        let (duplicate, message) =
            self.send(&agent(number), conn, Some(session), &text).expect("stored");
        assert!(!duplicate, "an answer is new");
        self.keep(conn, message);
    }

    /// The sessions a person takes part in, as stored.
    pub(super) fn sessions_of(&self, person: &Person) -> Vec<SessionId> {
        let rows = self.sessions.iter().map(|id| {
            let row = self.house.wait(self.house.stores.sessions.find(*id));
            row.expect("memory").expect("stored")
        });
        rows.filter(|session| takes_part(session, person)).map(|session| session.id).collect()
    }
}
