//! Receipts against their model: any order, any reporter, batches, repeats, cumulative ones.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::marker::PhantomData;

use kefu_messaging::{
    Message, MessageStatus, Receipt, ReceiptOutcome, ReceiptRequest, Reported, Sender,
};
use kefu_proptests::model::receipts::{AGENTS, Mark, Report, Step, Talk, USER};
use kefu_proptests::model::{
    Bench, CumulativeNamesOne, FailedIsFinal, OnMemory, OnPostgres, OnSqlite, ReceiptsGoBack,
    Setup, Who, caught, code, holds,
};
use proptest_state_machine::StateMachineTest;

struct Receipts<S>(PhantomData<S>);

impl<S: Setup> StateMachineTest for Receipts<S> {
    type SystemUnderTest = Bench<S>;
    type Reference = Talk;

    fn init_test(_: &Talk) -> Bench<S> {
        let mut bench = Bench::start(AGENTS);
        (0..AGENTS).for_each(|agent| bench.staff(agent, 10));
        let session = bench.wait(bench.world.open(bench.user(USER).as_str(), 0)).id;
        let claimed = bench.wait(bench.world.claim(&bench.admin(0), session));
        assert_eq!(code(claimed), Ok(()));
        bench.learn(session);
        bench
    }

    fn apply(bench: Bench<S>, talk: &Talk, step: Step) -> Bench<S> {
        let session = bench.sessions[0];
        let boss = Who::Boss.caller();
        match step {
            Step::Say(by_user) => {
                let sender = if by_user {
                    Sender::User(bench.user(USER))
                } else {
                    Sender::Agent(bench.admin(talk.owner))
                };
                let key = format!("k{}", talk.texts.len());
                bench.wait(bench.world.say(session, &sender, &key, "words"));
            }
            Step::Reports(reports) => report(&bench, talk, &reports),
            Step::Handover => {
                let target = bench.admin(talk.owner);
                let answer = bench.wait(bench.world.transfer(&boss, session, &target));
                assert_eq!(code(answer), Ok(()));
            }
            Step::End => assert_eq!(code(bench.wait(bench.world.end(&boss, session))), Ok(())),
        }
        bench
    }

    fn check_invariants(bench: &Bench<S>, talk: &Talk) {
        let rows = bench.check();
        let stored = rows.messages[&bench.sessions[0]].iter().map(|message| message.status);
        let due: Vec<_> = talk.texts.iter().map(|text| status(text.mark)).collect();
        assert_eq!(stored.collect::<Vec<_>>(), due);
    }
}

fn report<S: Setup>(bench: &Bench<S>, talk: &Talk, reports: &[Report]) {
    let messages = bench.wait(bench.world.history(bench.sessions[0]));
    let batch: Vec<_> = reports.iter().map(|report| request(report, &messages)).collect();
    let verdict = bench.wait(bench.world.report(&batch)).expect("the store answers");
    let answers = verdict.outcomes.iter().map(|outcome| match outcome {
        ReceiptOutcome::Taken => Ok(()),
        ReceiptOutcome::Refused(refusal) => Err(refusal.code()),
    });
    assert_eq!(answers.collect::<Vec<_>>(), talk.due, "the answers to {reports:?}");
    let told: Vec<_> = verdict
        .changes
        .iter()
        .map(|change| (change.message.msg_id, change.message.status))
        .collect();
    let changed = talk.changed.iter().copied();
    let due: Vec<_> =
        changed.map(|text| (messages[text].msg_id, status(talk.texts[text].mark))).collect();
    assert_eq!(told, due, "every change is told once, in order");
}

fn request(report: &Report, messages: &[Message]) -> ReceiptRequest {
    ReceiptRequest {
        by: report.who.map_or(Reported::BySystem, |who| Reported::By(who.caller())),
        msg_id: messages[report.text].msg_id,
        receipt: match report.mark {
            Mark::Failed => Receipt::Failed,
            Mark::Delivered => Receipt::Delivered,
            Mark::Read => Receipt::Read,
        },
        cumulative: report.up_to,
        origin: None,
        trace_id: None,
    }
}

const fn status(mark: Option<Mark>) -> MessageStatus {
    match mark {
        None => MessageStatus::Pending,
        Some(Mark::Failed) => MessageStatus::Failed,
        Some(Mark::Delivered) => MessageStatus::Delivered,
        Some(Mark::Read) => MessageStatus::Read,
    }
}

#[test]
fn on_memory() {
    holds::<Receipts<OnMemory>>(file!(), 256, 40);
}

#[test]
fn on_sqlite() {
    holds::<Receipts<OnSqlite>>(file!(), 6, 12);
}

#[test]
fn on_postgres() {
    holds::<Receipts<OnPostgres>>(file!(), 6, 12);
}

#[test]
fn a_status_that_goes_back_is_noticed() {
    caught::<Receipts<ReceiptsGoBack>>("a status goes back");
}

#[test]
fn a_cumulative_report_that_names_one_message_is_noticed() {
    caught::<Receipts<CumulativeNamesOne>>("every change is told once");
}

#[test]
fn a_failure_that_is_final_is_noticed() {
    caught::<Receipts<FailedIsFinal>>("every change is told once");
}
