//! Sends with one mistake (2.1, 2.4).

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kefu_core::snowflake::EPOCH_MS;
use kefu_core::{Clock, IdSource, ManualClock, MsgId, StoreFault};
use kefu_desk::Stores;
use kefu_events::Bus;
use kefu_messaging::{
    AppendDecision, AppendOutcome, AppendRequest, AppendSnapshot, AppendVerdict, Message,
    MessageStore, Stored, Tip,
};
use kefu_session::Refusal;
use kefu_testkit::World;

use crate::backend::Backend;
use crate::broken::meeting::Meeting;
use crate::passing::{Altered, PassingMessages};

/// What goes wrong on a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMistake {
    /// Nothing: shows that it is the mistake that is caught, not the wrapper.
    Nothing,
    /// The key is not looked up (T2).
    ForgetsKeys,
    /// The key is looked up whoever sent it (T2).
    MixesSenders,
    /// Repeats inside one batch are not compared with each other (T2).
    ForgetsBatch,
    /// Two sends decide on what they read before either wrote (T1, T2).
    DecidesOutsideLock,
    /// A repeat is answered with an id of its own (T2).
    AnswersRepeatsAnew,
    /// A repeat is not compared with what was stored (T2).
    TakesOtherContent,
    /// The answer leaves without anything written (A2).
    AcksWithoutStoring,
    /// A batch is stored from its end (M6).
    ReversesBatch,
    /// `create_time` is the wall clock's (T1).
    TakesTimeFromClock,
    /// Ids follow the wall clock back (T1, T3).
    TakesIdsFromClock,
}

/// A message store that makes one mistake.
pub struct CarelessMessages {
    inner: Arc<dyn MessageStore>,
    mistake: SendMistake,
    clock: Arc<dyn Clock>,
    ids: ClockIds,
    meeting: Meeting,
    /// All that was ever stored, whoever sent it.
    everybodys: Mutex<Vec<Arc<Message>>>,
}

impl CarelessMessages {
    /// A world on a backend of its own whose sends make `mistake`.
    pub async fn world<B: Backend>(mistake: SendMistake) -> (B, World) {
        let backend = B::start().await;
        let stores = backend.unconstrained().await;
        let clock = Arc::new(ManualClock::default());
        let world = World::with(Self::over(stores, mistake, &clock), clock, 0, Bus::silent());
        (backend, world)
    }

    /// `stores` whose sends make `mistake`.
    #[must_use]
    pub fn over(stores: Stores, mistake: SendMistake, clock: &Arc<ManualClock>) -> Stores {
        let inner = Arc::clone(&stores.messages);
        let messages = Arc::new(Altered(Self::new(inner, mistake, Arc::clone(clock) as _)));
        Stores { messages, ..stores }
    }

    fn new(inner: Arc<dyn MessageStore>, mistake: SendMistake, clock: Arc<dyn Clock>) -> Self {
        let ids = ClockIds { clock: Arc::clone(&clock), count: AtomicI64::new(0) };
        let (meeting, everybodys) = (Meeting::default(), Mutex::default());
        Self { inner, mistake, clock, ids, meeting, everybodys }
    }

    async fn append_outside_lock(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        let seen = Mutex::new(AppendSnapshot::default());
        let look = |snapshot: &AppendSnapshot, requests: &[AppendRequest], _: &dyn IdSource| {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = snapshot.clone();
            let outcomes = vec![AppendOutcome::Refused(Refusal::Conflict); requests.len()];
            AppendVerdict { outcomes, ..AppendVerdict::default() }
        };
        self.inner.append(batch, &look, ids).await?;
        self.meeting.meet().await;
        let old = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.inner.append(batch, &|_, requests, ids| decide(&old, requests, ids), ids).await
    }

    fn mix_senders(
        &self,
        snapshot: &AppendSnapshot,
        requests: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> AppendVerdict {
        let mut everybodys = self.everybodys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown = snapshot.clone();
        for request in requests {
            let same = everybodys.iter().filter(|old| old.client_msg_id == request.client_msg_id);
            let adopted =
                same.map(|old| Message { sender: request.sender.clone(), ..old.as_ref().clone() });
            shown.stored.extend(adopted);
        }
        let verdict = decide(&shown, requests, ids);
        everybodys.extend(verdict.messages.iter().cloned());
        verdict
    }

    /// The verdict as the mistake has it.
    fn spoilt(
        &self,
        snapshot: &AppendSnapshot,
        requests: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> AppendVerdict {
        match self.mistake {
            SendMistake::Nothing
            | SendMistake::DecidesOutsideLock
            | SendMistake::AcksWithoutStoring => decide(snapshot, requests, ids),
            SendMistake::ForgetsKeys => {
                let blind = AppendSnapshot { stored: Vec::new(), ..snapshot.clone() };
                decide(&blind, requests, ids)
            }
            SendMistake::MixesSenders => self.mix_senders(snapshot, requests, decide, ids),
            SendMistake::ForgetsBatch => {
                let single = |request| decide(snapshot, std::slice::from_ref(request), ids);
                requests.iter().map(single).fold(AppendVerdict::default(), joined)
            }
            SendMistake::AnswersRepeatsAnew => {
                let mut verdict = decide(snapshot, requests, ids);
                verdict.outcomes.iter_mut().for_each(|outcome| answer_anew(outcome, ids));
                verdict
            }
            SendMistake::TakesOtherContent => {
                let mut requests = requests.to_vec();
                requests.iter_mut().for_each(|request| adopt_content(request, snapshot));
                decide(snapshot, &requests, ids)
            }
            SendMistake::ReversesBatch => {
                let reversed: Vec<_> = requests.iter().rev().cloned().collect();
                let mut verdict = decide(snapshot, &reversed, ids);
                verdict.outcomes.reverse();
                verdict
            }
            SendMistake::TakesTimeFromClock => {
                let mut verdict = decide(snapshot, requests, ids);
                for message in &mut verdict.messages {
                    Arc::make_mut(message).create_time = self.clock.now();
                }
                verdict
            }
            SendMistake::TakesIdsFromClock => decide(snapshot, requests, &self.ids),
        }
    }
}

/// Both verdicts as one transaction; of two tips of a session the later one.
fn joined(mut before: AppendVerdict, after: AppendVerdict) -> AppendVerdict {
    let renewed = |tip: &Tip| after.tips.iter().any(|new| new.session_id == tip.session_id);
    before.tips.retain(|tip| !renewed(tip));
    before.outcomes.extend(after.outcomes);
    before.messages.extend(after.messages);
    before.tips.extend(after.tips);
    before.events.extend(after.events);
    before
}

fn answer_anew(outcome: &mut AppendOutcome, ids: &dyn IdSource) {
    if let AppendOutcome::Stored(Stored { message, duplicate: true }) = outcome {
        Arc::make_mut(message).msg_id = MsgId::next_after(ids, 0);
    }
}

fn adopt_content(request: &mut AppendRequest, snapshot: &AppendSnapshot) {
    let same =
        |old: &&Message| old.sender == request.sender && old.client_msg_id == request.client_msg_id;
    if let Some(old) = snapshot.stored.iter().find(same) {
        request.draft = kefu_messaging::Draft::Text(old.content.clone());
    }
}

/// Ids of the wall clock's millisecond, wherever that is.
#[derive(Debug)]
struct ClockIds {
    clock: Arc<dyn Clock>,
    count: AtomicI64,
}

impl IdSource for ClockIds {
    fn next_after(&self, _: i64) -> i64 {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // Worker 1, so that only order is broken and no id is given twice.
        ((self.clock.now().0 - EPOCH_MS) << 22) | (1 << 12) | (count & 0xFFF)
    }
}

#[async_trait]
impl PassingMessages for CarelessMessages {
    fn inner(&self) -> &dyn MessageStore {
        self.inner.as_ref()
    }

    async fn append(
        &self,
        batch: &[AppendRequest],
        decide: AppendDecision<'_>,
        ids: &dyn IdSource,
    ) -> Result<AppendVerdict, StoreFault> {
        if self.mistake == SendMistake::DecidesOutsideLock {
            return self.append_outside_lock(batch, decide, ids).await;
        }
        if self.mistake == SendMistake::AcksWithoutStoring {
            let lost =
                |snapshot: &AppendSnapshot, requests: &[AppendRequest], ids: &dyn IdSource| {
                    let outcomes = decide(snapshot, requests, ids).outcomes;
                    AppendVerdict { outcomes, ..AppendVerdict::default() }
                };
            return self.inner.append(batch, &lost, ids).await;
        }
        let spoilt = |snapshot: &AppendSnapshot, requests: &[AppendRequest], ids: &dyn IdSource| {
            self.spoilt(snapshot, requests, decide, ids)
        };
        self.inner.append(batch, &spoilt, ids).await
    }
}
