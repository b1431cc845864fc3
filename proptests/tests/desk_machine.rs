//! The whole desk against its visitors' model: connects, losses, restarts, intruders. After every step
//! everything that reached a device is held against what is stored.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::time::Duration;

use kefu_assignment::Origin;
use kefu_core::limit::PAGE;
use kefu_core::{AdminId, Caller, ConnId, ErrorCode, Page, PageLimit, Person, Seq, SessionId};
use kefu_desk::{ConnectAnswer, Intent, SendRequest};
use kefu_messaging::invariant::{
    check_acknowledged, check_authors, check_held, check_resumed, check_told, check_undelivered,
};
use kefu_messaging::{Draft, Message, Push, Receipt, Sender, Side, Window};
use kefu_proptests::model::house::House;
use kefu_proptests::model::visits::{AGENTS, Step, Visits};
use kefu_proptests::model::{
    AuthorFromClient, DeliveredAtOnce, FirstIsSkipped, OnMemory, PushesReachAll, Setup, Who,
    became, caught, holds,
};
use kefu_session::invariant::{Violation, check_succession};
use kefu_session::{Session, Status};
use kefu_testkit::build::{key, trace};
use kefu_testkit::check::Ledger;
use proptest_state_machine::StateMachineTest;

struct DeskMachine<S>(PhantomData<S>);

/// The house with what its people did so far.
struct Scene {
    house: House,
    /// Each visitor's devices.
    devices: BTreeMap<(usize, usize), ConnId>,
    agents: BTreeMap<usize, ConnId>,
    sessions: BTreeSet<SessionId>,
    acknowledged: BTreeSet<kefu_core::MsgId>,
    answers: usize,
    before: Ledger,
    found: Vec<Violation>,
}

impl<S: Setup> StateMachineTest for DeskMachine<S> {
    type SystemUnderTest = Scene;
    type Reference = Visits;

    fn init_test(_: &Visits) -> Scene {
        Scene {
            house: House::start::<S>(),
            devices: BTreeMap::new(),
            agents: BTreeMap::new(),
            sessions: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            answers: 0,
            before: Ledger::default(),
            found: Vec::new(),
        }
    }

    fn apply(mut scene: Scene, visits: &Visits, step: Step) -> Scene {
        scene.act(visits, step);
        scene.house.pass(Duration::from_millis(1));
        scene.settle();
        let found: Vec<_> = scene.found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "after {step:?}:\n{}", found.join("\n"));
        scene
    }

    /// What visitors said and have open is what the model says, whatever was lost on the way.
    fn check_invariants(scene: &Scene, visits: &Visits) {
        for (number, due) in visits.visitors.iter().enumerate() {
            assert_eq!(said_by(&scene.before, number), due.texts, "the texts of visitor {number}");
            assert_eq!(scene.open_of(number).is_some(), due.open, "a session of {number} is open");
        }
    }
}

fn visitor(number: usize) -> Caller {
    Who::User(number).caller()
}

fn agent(number: usize) -> Caller {
    Who::Agent(number).caller()
}

fn admin(number: usize) -> AdminId {
    match agent(number).person() {
        Person::Agent(admin) => admin,
        Person::User(_) => unreachable!("an agent"),
    }
}

const HERE: Origin = Origin(None);

impl Scene {
    fn act(&mut self, visits: &Visits, step: Step) {
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

    fn open_of(&self, number: usize) -> Option<Session> {
        let Person::User(user) = visitor(number).person() else { unreachable!("a user") };
        self.house.wait(self.house.stores.sessions.find_open(&user)).expect("memory")
    }

    fn owned(&self, number: usize, which: usize) -> Option<SessionId> {
        let owned = self.house.wait(self.house.stores.sessions.list_owned(&admin(number)));
        let owned = owned.expect("memory");
        owned.get(which.checked_rem(owned.len())?).map(|session| session.id)
    }

    fn stored(&self, session: SessionId) -> Vec<Message> {
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

    /// Exactly what is above the position, or was not delivered, with the session as it stands, and
    /// nothing of the agents' side.
    fn check_answer(
        &mut self,
        number: usize,
        answer: &ConnectAnswer,
        position: Option<(SessionId, Seq)>,
    ) {
        let page = Page { items: answer.unread.clone(), has_more: answer.has_more };
        let limit = PAGE as usize;
        let found = match position {
            Some((session, above)) => check_resumed(&self.stored(session), above, limit, &page),
            None => {
                let mut all: Vec<_> = self.sessions_of(&visitor(number).person());
                all.sort();
                let all: Vec<_> = all.into_iter().flat_map(|id| self.stored(id)).collect();
                check_undelivered(&all, Side::User, limit, &page)
            }
        };
        self.found.extend(found);
        assert!(answer.owned.is_empty() && answer.agent.is_none(), "a console's answer");
        let open = self.open_of(number);
        assert_eq!(answer.session_id, open.as_ref().map(|session| session.id), "the open session");
        if let (Some(view), Some(stored)) = (&answer.session, open) {
            self.found.extend(check_succession(&view.session, &stored));
        }
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
    fn sessions_of(&self, person: &Person) -> Vec<SessionId> {
        let rows = self.sessions.iter().map(|id| {
            let row = self.house.wait(self.house.stores.sessions.find(*id));
            row.expect("memory").expect("stored")
        });
        rows.filter(|session| takes_part(session, person)).map(|session| session.id).collect()
    }

    /// Reads everything and checks it.
    fn settle(&mut self) {
        let pushed = self.house.hear();
        let admins = (0..AGENTS).map(admin);
        let ledger = Ledger::collect(&self.house.stores, self.sessions.iter().copied(), admins);
        let now = self.house.wait(ledger).expect("memory");
        self.found.extend(now.violations_but_caps());
        self.found.extend(became(&self.before, &now));
        self.check_told(&now, &pushed);
        self.check_rows(&now);
        self.check_devices(&now);
        self.before = now;
    }

    fn check_told(&mut self, now: &Ledger, pushed: &[(ConnId, Push)]) {
        let mut by_conn: BTreeMap<ConnId, Vec<Push>> = BTreeMap::new();
        for (conn, push) in pushed {
            by_conn.entry(*conn).or_default().push(push.clone());
        }
        for (conn, pushes) in by_conn {
            let Some(device) = self.house.devices.get(&conn) else { continue };
            let person = device.caller.person();
            let rows = self.before.sessions.iter().chain(&now.sessions);
            let theirs = rows.filter(|session| takes_part(session, &person));
            let theirs = theirs.map(|session| session.id).collect();
            self.found.extend(check_told(&person, &theirs, &pushes));
        }
    }

    fn check_rows(&mut self, now: &Ledger) {
        for session in &now.sessions {
            let records = &now.records[&session.id];
            let owners = records.iter().filter_map(|record| record.admin_id.clone()).collect();
            let messages = &now.messages[&session.id];
            self.found.extend(check_authors(session, &owners, messages));
            self.found.extend(check_acknowledged(messages, &self.acknowledged));
        }
    }

    /// What a device has is what is stored, and one that hears has all since it connected.
    fn check_devices(&mut self, now: &Ledger) {
        let all: Vec<_> = now.messages.values().flatten().cloned().collect();
        for (conn, device) in &self.house.devices {
            self.found.extend(check_held(&all, device.held.values()));
            for (session, since) in device.since.iter().filter(|_| !device.is_deaf) {
                let row = now.sessions.iter().find(|row| row.id == *session);
                if !row.is_some_and(|row| takes_part(row, &device.caller.person())) {
                    continue;
                }
                let later = now.messages[session].iter().filter(|message| message.seq > *since);
                let missing = later.filter(|message| !device.held.contains_key(&message.msg_id));
                self.found.extend(missing.map(|message| {
                    Violation::new(format!("{conn:?} hears and misses {message:?}"))
                }));
            }
        }
    }
}

fn takes_part(session: &Session, person: &Person) -> bool {
    match person {
        Person::User(user) => session.user.user_id == *user,
        Person::Agent(admin) => session.admin_id.as_ref() == Some(admin),
    }
}

/// The numbers of what a visitor said, over all sessions, oldest first.
fn said_by(now: &Ledger, number: usize) -> Vec<usize> {
    let Person::User(user) = visitor(number).person() else { unreachable!("a user") };
    let mut said: Vec<_> = now.messages.values().flatten().collect();
    said.sort_by_key(|message| message.msg_id);
    let own = said.into_iter().filter(|message| message.sender == Sender::User(user.clone()));
    own.map(|message| message.content[1..].parse().expect("a number")).collect()
}

#[test]
fn on_memory() {
    holds::<DeskMachine<OnMemory>>(file!(), 256, 60);
}

#[test]
fn a_page_without_its_first_is_noticed() {
    caught::<DeskMachine<FirstIsSkipped>>("is handed out");
}

#[test]
fn a_lost_push_that_counts_as_delivered_is_noticed() {
    caught::<DeskMachine<DeliveredAtOnce>>("was acknowledged by nobody");
}

#[test]
fn an_author_named_by_the_client_is_noticed() {
    caught::<DeskMachine<AuthorFromClient>>("is by a stranger");
}

#[test]
fn a_push_that_reaches_everybody_is_noticed() {
    caught::<DeskMachine<PushesReachAll>>("is told");
}
