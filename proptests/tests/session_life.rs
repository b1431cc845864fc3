//! A session's life against its model: every event from every side, on memory and on SQLite.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::marker::PhantomData;

use kefu_core::{Clock, ErrorCode};
use kefu_messaging::{AppendOutcome, Message, Sender};
use kefu_proptests::model::life::{AGENTS, Chat, Life, Step, Text};
use kefu_proptests::model::{
    AnswersAfterEnd, Bench, EndsTwice, ForgetsKeys, OnMemory, OnPostgres, OnSqlite, Setup, Stage,
    Who, caught, code, holds,
};
use kefu_session::{RatingRequest, Session, Status, Updated, decide_rating};
use kefu_testkit::build;
use proptest_state_machine::StateMachineTest;

struct SessionLife<S>(PhantomData<S>);

impl<S: Setup> StateMachineTest for SessionLife<S> {
    type SystemUnderTest = Bench<S>;
    type Reference = Life;

    fn init_test(_: &Life) -> Bench<S> {
        let bench = Bench::start(AGENTS);
        (0..AGENTS).for_each(|agent| bench.staff(agent, 10));
        bench
    }

    fn apply(mut bench: Bench<S>, life: &Life, step: Step) -> Bench<S> {
        let answer = act(&mut bench, &step);
        assert_eq!(answer, life.due, "the answer to {step:?}");
        bench
    }

    fn check_invariants(bench: &Bench<S>, life: &Life) {
        let rows = bench.check();
        assert_eq!(rows.sessions.len(), life.chats.len(), "sessions");
        for (chat, id) in life.chats.iter().zip(&bench.sessions) {
            let session = rows.sessions.iter().find(|session| session.id == *id);
            compare(bench, chat, session.expect("a stored session"), &rows.messages[id]);
        }
    }
}

fn compare<S: Setup>(bench: &Bench<S>, chat: &Chat, session: &Session, messages: &[Message]) {
    let admin = |agent: usize| Some(bench.admin(agent));
    let (status, owner) = match chat.standing.stage {
        Stage::Waiting => (Status::Waiting, None),
        Stage::With(agent) => (Status::Active, admin(agent)),
        Stage::Over(agent) => (Status::Ended, agent.and_then(admin)),
    };
    assert_eq!((session.status, &session.admin_id), (status, &owner), "{chat:?}");
    assert_eq!(session.user.user_id, bench.user(chat.standing.user), "{chat:?}");
    assert_eq!(session.rating.as_ref().map(|rating| rating.score), chat.stars, "{chat:?}");
    let said: Vec<_> = messages
        .iter()
        .map(|message| (&message.sender, message.client_msg_id.as_str(), &*message.content))
        .map(|(sender, key, content)| (sender.clone(), key.to_owned(), content.to_owned()))
        .collect();
    let due: Vec<_> = chat.texts.iter().map(|text| told(bench, text)).collect();
    assert_eq!(said, due, "{chat:?}");
}

fn told<S: Setup>(bench: &Bench<S>, text: &Text) -> (Sender, String, String) {
    (sender(bench, text.who), format!("k{}", text.key), format!("w{}", text.words))
}

fn sender<S: Setup>(bench: &Bench<S>, who: Who) -> Sender {
    match who {
        Who::User(user) => Sender::User(bench.user(user)),
        Who::Agent(agent) => Sender::Agent(bench.admin(agent)),
        Who::Boss => Sender::System,
    }
}

fn act<S: Setup>(bench: &mut Bench<S>, step: &Step) -> Result<(), ErrorCode> {
    let world = bench.world.clone();
    match *step {
        Step::Connect(user) => {
            let info = build::user(bench.user(user).as_str(), 0);
            let opened = bench.wait(world.open_as(&info));
            assert!(opened.session.is_open() && opened.session.user.user_id == info.user_id);
            assert_ne!(opened.created, bench.sessions.contains(&opened.session.id), "S1");
            bench.learn(opened.session.id);
            Ok(())
        }
        Step::Claim(who, chat) => {
            let caller = who.caller();
            let (here, trace) = (kefu_assignment::Origin(None), build::trace());
            code(bench.wait(world.assignments.claim(&caller, bench.sessions[chat], here, trace)))
        }
        Step::Transfer(who, chat, target) => {
            let target = bench.admin(target);
            code(bench.wait(world.transfer(&who.caller(), bench.sessions[chat], &target)))
        }
        Step::End(who, chat) => code(bench.wait(world.end(&who.caller(), bench.sessions[chat]))),
        Step::Rate(who, chat, score) => rate(bench, who, chat, score),
        Step::Say(who, chat, key, words) => {
            let (sender, key, words) = told(bench, &Text { who, key, words });
            let sent = bench.wait(world.send(bench.sessions[chat], &sender, &key, &words));
            match sent {
                AppendOutcome::Stored(_) => Ok(()),
                AppendOutcome::Refused(refusal) => Err(refusal.code()),
            }
        }
        Step::Requeue(agent) => {
            let admin = bench.admin(agent);
            let answer = code(bench.wait(world.offline(&admin, true)));
            bench.wait(world.online(&admin, 10));
            answer
        }
        Step::ClockStep(millis) => {
            let before = world.clock.now();
            world.clock.step_wall(millis);
            assert_eq!(world.clock.now().0, before.0 + millis);
            Ok(())
        }
    }
}

fn rate<S: Setup>(bench: &Bench<S>, who: Who, chat: usize, score: u8) -> Result<(), ErrorCode> {
    let context = bench.world.context();
    let request = RatingRequest { score, comment: String::new() };
    let caller = who.caller();
    let ids = bench.world.ids.as_ref();
    let rated = bench.wait(bench.world.stores.sessions.update(
        bench.sessions[chat],
        &|session, ids| decide_rating(session, &caller, &request, &context, ids),
        ids,
    ));
    match rated.expect("the store answers") {
        Updated::Written(..) => Ok(()),
        Updated::Refused(refusal) => Err(refusal.code()),
        other => panic!("a rating led to {other:?}"),
    }
}

#[test]
fn on_memory() {
    holds::<SessionLife<OnMemory>>(file!(), 256, 40);
}

#[test]
fn on_sqlite() {
    holds::<SessionLife<OnSqlite>>(file!(), 6, 12);
}

#[test]
fn on_postgres() {
    holds::<SessionLife<OnPostgres>>(file!(), 6, 12);
}

#[test]
fn a_message_after_the_end_is_noticed() {
    caught::<SessionLife<AnswersAfterEnd>>("the answer to Say");
}

#[test]
fn a_second_end_is_noticed() {
    caught::<SessionLife<EndsTwice>>("changed after its end");
}

#[test]
fn a_forgotten_key_is_noticed() {
    caught::<SessionLife<ForgetsKeys>>("a key is used twice");
}
