//! The reference model of receipts: one conversation, reports in any order and any company.

use kefu_core::ErrorCode;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::Who;

/// The conversation's user; every other number is a stranger.
pub const USER: usize = 0;
/// How many agents work; the first has the conversation at the start.
pub const AGENTS: usize = 2;

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Pushes went unanswered.
    Failed,
    /// A device has it.
    Delivered,
    /// It was seen.
    Read,
}

/// One report.
#[derive(Debug, Clone)]
pub struct Report {
    /// Who reports; `None` is kefu itself.
    pub who: Option<Who>,
    /// About which message.
    pub text: usize,
    /// What.
    pub mark: Mark,
    /// Also about the earlier ones of the same side.
    pub up_to: bool,
}

/// One message.
#[derive(Debug, Clone)]
pub struct Text {
    /// Whether the user wrote it.
    pub by_user: bool,
    /// The last mark that counted.
    pub mark: Option<Mark>,
}

/// The conversation, and what the last step must have answered.
#[derive(Debug, Clone)]
pub struct Talk {
    /// Its messages, in order.
    pub texts: Vec<Text>,
    /// Who has it, or had it at the end.
    pub owner: usize,
    /// Whether it is over.
    pub over: bool,
    /// The answers that are due, one per report.
    pub due: Vec<Result<(), ErrorCode>>,
    /// The messages whose mark the last step changed.
    pub changed: Vec<usize>,
}

/// One event.
#[derive(Debug, Clone)]
pub enum Step {
    /// The user (or else the owner) writes.
    Say(bool),
    /// Reports that share a transaction.
    Reports(Vec<Report>),
    /// The other agent gets the conversation.
    Handover,
    /// It is over.
    End,
}

impl Talk {
    fn report(&mut self, report: &Report) -> Result<(), ErrorCode> {
        if let Some(who) = report.who {
            self.admit(who, report)?;
        }
        let by_user = self.texts[report.text].by_user;
        for (number, text) in self.texts.iter_mut().enumerate() {
            let earlier = report.up_to && number < report.text && text.by_user == by_user;
            if number == report.text || earlier {
                text.mark = further(text.mark, report.mark);
            }
        }
        Ok(())
    }

    fn admit(&self, who: Who, report: &Report) -> Result<(), ErrorCode> {
        let party = match who {
            Who::Boss => return Err(ErrorCode::Forbidden),
            _ if report.mark == Mark::Failed => return Err(ErrorCode::BadRequest),
            Who::User(user) => user == USER,
            Who::Agent(agent) => agent == self.owner,
        };
        if !party {
            return Err(ErrorCode::NotFound);
        }
        let own = self.texts[report.text].by_user == matches!(who, Who::User(_));
        if own { Err(ErrorCode::Forbidden) } else { Ok(()) }
    }
}

/// Nothing, failed, delivered, read: only ever onward, and a failure only of what nobody has marked.
fn further(old: Option<Mark>, new: Mark) -> Option<Mark> {
    let onward = match old {
        None => true,
        Some(Mark::Failed) => new != Mark::Failed,
        Some(Mark::Delivered) => new == Mark::Read,
        Some(Mark::Read) => false,
    };
    if onward { Some(new) } else { old }
}

impl ReferenceStateMachine for Talk {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        let (texts, due, changed) = (Vec::new(), Vec::new(), Vec::new());
        Just(Self { texts, owner: 0, over: false, due, changed }).boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Step> {
        let say = any::<bool>().prop_map(Step::Say);
        if state.texts.is_empty() {
            return say.boxed();
        }
        let person = prop_oneof![
            6 => Just(Who::User(USER)),
            6 => (0..AGENTS).prop_map(Who::Agent),
            1 => Just(Who::User(USER + 1)),
            1 => Just(Who::Boss),
        ];
        let mark = prop_oneof![
            4 => Just(Mark::Delivered),
            3 => Just(Mark::Read),
            1 => Just(Mark::Failed),
        ];
        let texts = 0..state.texts.len();
        let theirs = (person, texts.clone(), mark, any::<bool>())
            .prop_map(|(who, text, mark, up_to)| Report { who: Some(who), text, mark, up_to });
        let ours =
            texts.prop_map(|text| Report { who: None, text, mark: Mark::Failed, up_to: false });
        let report = prop_oneof![4 => theirs, 1 => ours];
        let reports = proptest::collection::vec(report, 1..=4).prop_map(Step::Reports);
        if state.over {
            return reports.boxed();
        }
        prop_oneof![
            10 => say,
            20 => reports,
            2 => Just(Step::Handover),
            1 => Just(Step::End),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, step: &Step) -> bool {
        match step {
            Step::Reports(reports) => reports.iter().all(|report| report.text < state.texts.len()),
            Step::Say(_) | Step::Handover | Step::End => !state.over,
        }
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        let before: Vec<_> = state.texts.iter().map(|text| text.mark).collect();
        state.due.clear();
        match step {
            Step::Say(by_user) => state.texts.push(Text { by_user: *by_user, mark: None }),
            Step::Reports(reports) => {
                state.due = reports.iter().map(|report| state.report(report)).collect();
            }
            Step::Handover => state.owner = 1 - state.owner,
            Step::End => state.over = true,
        }
        let marks = before.iter().zip(&state.texts).enumerate();
        let changed = marks.filter(|(_, (before, text))| **before != text.mark);
        state.changed = changed.map(|(number, _)| number).collect();
        state
    }
}
