//! 2.5 ACK consistency: what was delivered is not pushed to that receiver again (M3, M4).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::{AdminId, Caller, ConnId, MsgId, PageLimit, Person, SessionId};
use kefu_desk::Stores;
use kefu_messaging::{
    BatchConfig, Delivery, Message, MessageStatus, MessageStore, Push, Pusher, Reach, Receipt,
    RetrySchedule, Sender,
};
use kefu_proptests::backend::Backend;
use kefu_proptests::broken::{CarelessReceipts, ReceiptMistake};
use kefu_proptests::{Violation, caught, ensure, generated, on_every_backend};
use kefu_testkit::{Flaky, Strike, World, build, race};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

on_every_backend!(
    after_a_lost_ack_and_a_reconnect_what_was_delivered_is_not_in_unread,
    any_acks_leave_exactly_the_undelivered_in_unread,
    acks_at_once_leave_exactly_the_undelivered_in_unread,
    what_was_delivered_is_not_retried_and_told_only_after_its_commit,
    every_mistake_is_caught,
);

/// The same question as SQL: what a reconnect may hand out.
const DELIVERED: &str =
    "SELECT COUNT(*) FROM cg_chat_message WHERE msg_id = ? AND status = 'delivered'";
const AT_ONCE: usize = 20;

/// An agent's messages to a user, who acknowledges.
struct Talk {
    world: World,
    session: SessionId,
    admin: AdminId,
    user: Caller,
}

impl Talk {
    async fn begin(world: World) -> Result<Self, Violation> {
        let session = world.open("u", 0).await;
        let admin = world.agent("a", 1).await;
        let claimed = world.claim(&admin, session.id).await;
        ensure(claimed.is_ok(), || format!("{claimed:?}"))?;
        let user = build::user_caller(&session.user.user_id);
        Ok(Self { world, session: session.id, admin, user })
    }

    async fn say(&self, text: &str) -> Arc<Message> {
        self.world.say(self.session, &build::from_agent(&self.admin), text, text).await
    }

    /// What a reconnect of the user hands out.
    async fn unread(&self) -> Result<Vec<MsgId>, Violation> {
        let (user, session) = (self.user.person(), Some(self.session));
        let messages = &self.world.stores.messages;
        let page = messages.list_undelivered(&user, session, PageLimit::MAX).await?;
        Ok(page.items.iter().map(|message| message.msg_id).collect())
    }

    async fn status(&self, id: MsgId) -> Result<Option<MessageStatus>, Violation> {
        let found = self.world.stores.messages.find(id).await?;
        Ok(found.map(|message| message.status))
    }
}

async fn after_a_lost_ack_and_a_reconnect_what_was_delivered_is_not_in_unread<B: Backend>()
-> Result<(), Violation> {
    let (backend, world) = World::start::<B>().await;
    check_lost_ack(&backend, world).await
}

/// The spec's own: one ack is applied and its answer lost, one never arrives; the client reconnects.
async fn check_lost_ack<B: Backend>(backend: &B, world: World) -> Result<(), Violation> {
    let (flaky, world) = flaky(world);
    let talk = Talk::begin(world).await?;
    let (applied, lost) = (talk.say("1").await.msg_id, talk.say("2").await.msg_id);
    let ack = |id| build::receipt(&talk.user, id, Receipt::Delivered);
    flaky.lose_answer(1);
    let answer = talk.world.report(&[ack(applied)]).await;
    ensure(answer.is_err(), || "an answer that was lost arrived".to_owned())?;
    flaky.fail(1, Strike::Before, kefu_core::StoreFault::unavailable("the ack is lost"));
    let answer = talk.world.report(&[ack(lost)]).await;
    ensure(answer.is_err(), || "an ack that was lost is answered".to_owned())?;
    let unread = talk.unread().await?;
    ensure(!unread.contains(&applied), || "a delivered message is handed out again".to_owned())?;
    ensure(unread == [lost], || format!("{unread:?} instead of {lost} is handed out"))?;
    // The client repeats both; it is harmless, and nothing is left.
    talk.world.report(&[ack(applied), ack(lost)]).await?;
    let unread = talk.unread().await?;
    ensure(unread.is_empty(), || format!("{unread:?} is handed out after its ack"))?;
    let Some(sql) = backend.sql().await else { return Ok(()) };
    let delivered = sql.count(DELIVERED, applied.get()).await;
    ensure(delivered == 1, || "the row is not delivered".to_owned())
}

fn flaky(world: World) -> (Arc<Flaky<dyn MessageStore>>, World) {
    let flaky = Arc::new(Flaky::new(Arc::clone(&world.stores.messages)));
    let messages: Arc<dyn MessageStore> = Arc::clone(&flaky) as _;
    (flaky, World { stores: Stores { messages, ..world.stores.clone() }, ..world })
}

#[derive(Debug, Clone, Copy)]
enum Loss {
    None,
    Ack,
    Answer,
}

#[derive(Debug, Clone)]
enum Act {
    /// The agent writes, or the user does, whose messages are nobody's business here.
    Say { by_agent: bool },
    /// The user acknowledges one of the messages, maybe with all before it.
    Ack { which: u8, read: bool, cumulative: bool, loss: Loss },
    /// All pushes of one went unanswered.
    GiveUp { which: u8 },
    /// The wall clock steps, in milliseconds.
    Step(i64),
}

fn act() -> impl Strategy<Value = Act> {
    let loss = prop_oneof![3 => Just(Loss::None), 1 => Just(Loss::Ack), 1 => Just(Loss::Answer)];
    prop_oneof![
        4 => any::<bool>().prop_map(|by_agent| Act::Say { by_agent }),
        4 => (any::<u8>(), any::<bool>(), any::<bool>(), loss).prop_map(
            |(which, read, cumulative, loss)| Act::Ack { which, read, cumulative, loss }
        ),
        1 => any::<u8>().prop_map(|which| Act::GiveUp { which }),
        1 => (-300_000..300_000_i64).prop_map(Act::Step),
    ]
}

async fn any_acks_leave_exactly_the_undelivered_in_unread<B: Backend>() -> Result<(), Violation> {
    generated(file!(), B::CASES, &vec(act(), 1..24), async |acts| {
        let (_backend, world) = World::start::<B>().await;
        check_acts(world, &acts).await
    })
}

/// After every act a reconnect hands out exactly what is neither delivered nor read.
async fn check_acts(world: World, acts: &[Act]) -> Result<(), Violation> {
    let (flaky, world) = flaky(world);
    let talk = Talk::begin(world).await?;
    let user = Sender::User(build::user("u", 0).user_id);
    let mut expected: BTreeMap<MsgId, MessageStatus> = BTreeMap::new();
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::Say { by_agent: true } => {
                let said = talk.say(&number.to_string()).await;
                expected.insert(said.msg_id, MessageStatus::Pending);
            }
            Act::Say { by_agent: false } => {
                let text = number.to_string();
                talk.world.say(talk.session, &user, &text, &text).await;
            }
            Act::Ack { which, read, cumulative, loss } => {
                let ids: Vec<_> = expected.keys().copied().collect();
                let Some(id) = pick(*which, &ids) else { continue };
                let kind = if *read { Receipt::Read } else { Receipt::Delivered };
                acknowledge(&talk, &flaky, id, kind, *cumulative, *loss).await?;
                if !matches!(loss, Loss::Ack) {
                    raise(&mut expected, id, kind.status(), *cumulative);
                }
            }
            Act::GiveUp { which } => {
                let ids: Vec<_> = expected.keys().copied().collect();
                let Some(id) = pick(*which, &ids) else { continue };
                talk.world.report(&[build::unanswered(id)]).await?;
                raise(&mut expected, id, MessageStatus::Failed, false);
            }
            Act::Step(by) => talk.world.clock.step_wall(*by),
        }
        check_unread(&talk, &expected).await?;
    }
    Ok(())
}

fn pick(which: u8, ids: &[MsgId]) -> Option<MsgId> {
    let index = usize::from(which).checked_rem(ids.len())?;
    ids.get(index).copied()
}

async fn acknowledge(
    talk: &Talk,
    flaky: &Flaky<dyn MessageStore>,
    id: MsgId,
    kind: Receipt,
    cumulative: bool,
    loss: Loss,
) -> Result<(), Violation> {
    let mut ack = build::receipt(&talk.user, id, kind);
    ack.cumulative = cumulative;
    match loss {
        Loss::None => {}
        Loss::Ack => {
            flaky.fail(1, Strike::Before, kefu_core::StoreFault::unavailable("the ack is lost"));
        }
        Loss::Answer => flaky.lose_answer(1),
    }
    let answer = talk.world.report(&[ack]).await;
    let answered = answer.is_ok() == matches!(loss, Loss::None);
    ensure(answered, || format!("{loss:?}, but {answer:?}"))
}

/// The plain model: a status only rises.
fn raise(
    expected: &mut BTreeMap<MsgId, MessageStatus>,
    id: MsgId,
    status: MessageStatus,
    cumulative: bool,
) {
    let rank = |status| match status {
        MessageStatus::Pending => 0,
        MessageStatus::Failed => 1,
        MessageStatus::Delivered => 2,
        MessageStatus::Read => 3,
    };
    for (_, present) in
        expected.iter_mut().filter(|(each, _)| **each == id || cumulative && **each < id)
    {
        if rank(status) > rank(*present) {
            *present = status;
        }
    }
}

async fn check_unread(
    talk: &Talk,
    expected: &BTreeMap<MsgId, MessageStatus>,
) -> Result<(), Violation> {
    let open = expected.iter().filter(|(_, status)| !status.is_delivered()).map(|(id, _)| *id);
    let (open, unread): (Vec<_>, _) = (open.collect(), talk.unread().await?);
    ensure(open == unread, || format!("{unread:?} is handed out instead of {open:?}"))?;
    for (id, status) in expected {
        let found = talk.status(*id).await?;
        ensure(found == Some(*status), || format!("{id} is {found:?} instead of {status:?}"))?;
    }
    Ok(())
}

async fn acks_at_once_leave_exactly_the_undelivered_in_unread<B: Backend>() -> Result<(), Violation>
{
    let (_backend, world) = World::start::<B>().await;
    check_at_once(world).await
}

/// Devices acknowledge all at once, each message twice, some `read` and some `delivered`.
async fn check_at_once(world: World) -> Result<(), Violation> {
    let talk = Talk::begin(world).await?;
    let mut expected = BTreeMap::new();
    for number in 0..AT_ONCE / 2 + 1 {
        let said = talk.say(&number.to_string()).await.msg_id;
        let read = if number % 2 == 0 { MessageStatus::Read } else { MessageStatus::Delivered };
        expected.insert(said, read);
    }
    let ids: Vec<_> = expected.keys().copied().collect();
    let acked = race(AT_ONCE, |task| {
        let (world, id) = (talk.world.clone(), ids[task / 2]);
        let read = task / 2 % 2 == 0 && task % 2 == 0;
        let kind = if read { Receipt::Read } else { Receipt::Delivered };
        let ack = build::receipt(&talk.user, id, kind);
        async move { world.report(&[ack]).await.map(|_| ()) }
    });
    acked.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    // Nobody acknowledged the last one.
    expected.extend(ids.last().map(|last| (*last, MessageStatus::Pending)));
    check_unread(&talk, &expected).await
}

/// A user's and an agent's connections, and what reached them.
struct Connected {
    stores: Stores,
    pushed: Mutex<Vec<MsgId>>,
    /// With the status in the store when the sender's side was told.
    told: watch::Sender<Vec<(MsgId, MessageStatus, Option<MessageStatus>)>>,
}

impl Connected {
    fn pushed(&self) -> MutexGuard<'_, Vec<MsgId>> {
        self.pushed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Pusher for Connected {
    async fn push(&self, _: &Person, push: &Push, _: Option<ConnId>) -> Reach {
        match push {
            Push::Message { message, own: false, .. } => self.pushed().push(message.msg_id),
            Push::PeerAck { msg_id, status, .. } => {
                let found = self.stores.messages.find(*msg_id).await.ok().flatten();
                let stored = found.map(|message| message.status);
                self.told.send_modify(|told| told.push((*msg_id, *status, stored)));
            }
            _ => {}
        }
        Reach { connections: 1 }
    }

    async fn push_to_consoles(&self, _: &Push) {}
}

async fn what_was_delivered_is_not_retried_and_told_only_after_its_commit<B: Backend>()
-> Result<(), Violation> {
    let (backend, world) = World::start::<B>().await;
    check_pushes(&backend, world).await
}

/// One message is acknowledged to another node, one here, one never: only the last is pushed again.
async fn check_pushes<B: Backend>(backend: &B, world: World) -> Result<(), Violation> {
    let talk = Talk::begin(world).await?;
    let told = watch::Sender::new(Vec::new());
    let connected =
        Arc::new(Connected { stores: backend.stores(), pushed: Mutex::default(), told });
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let (delivery, receipts) = Delivery::start(
        Arc::clone(&talk.world.stores.messages),
        Arc::clone(&talk.world.stores.sessions),
        Arc::clone(&connected) as Arc<dyn Pusher>,
        RetrySchedule::new(vec![Duration::from_millis(5); 3]),
        BatchConfig::default(),
        &tracker,
        &stop,
    );
    let there = talk.say("acknowledged to another node").await.msg_id;
    let here = talk.say("acknowledged here").await.msg_id;
    let never = talk.say("never acknowledged").await.msg_id;
    let ack = |id| build::receipt(&talk.user, id, Receipt::Delivered);
    talk.world.report(&[ack(there)]).await?;
    let taken = receipts.report(ack(here)).await;
    ensure(taken.is_ok(), || format!("{taken:?}"))?;
    // A connect answer carried all three a moment before: their retries come due now.
    [there, here, never].into_iter().for_each(|id| delivery.handed_over(id));
    let mut told = connected.told.subscribe();
    let failed = told.wait_for(|told| told.iter().any(|(id, ..)| *id == never));
    let in_time = tokio::time::timeout(Duration::from_secs(20), failed).await;
    ensure(in_time.is_ok(), || "a message that nobody acknowledges never fails".to_owned())?;
    stop.cancel();
    tracker.close();
    let pushed = connected.pushed().clone();
    ensure(!pushed.contains(&there) && !pushed.contains(&here), || {
        "a delivered message is pushed again".to_owned()
    })?;
    ensure(pushed == [never; 3], || format!("{pushed:?} was pushed"))?;
    let told = connected.told.borrow().clone();
    for (id, status, stored) in &told {
        let committed = *stored == Some(*status);
        ensure(committed, || format!("{id} is told as {status:?} while it is {stored:?}"))?;
    }
    Ok(())
}

async fn every_mistake_is_caught<B: Backend>() -> Result<(), Violation> {
    let all_read = [
        Act::Say { by_agent: true },
        Act::Say { by_agent: true },
        Act::Ack { which: 1, read: true, cumulative: true, loss: Loss::None },
    ];
    let (backend, world) = CarelessReceipts::world::<B>(ReceiptMistake::Nothing).await;
    check_lost_ack(&backend, world).await?;
    for (mistake, because) in [
        (ReceiptMistake::ListsDelivered, "handed out again"),
        (ReceiptMistake::AnswersBeforeCommit, "handed out again"),
        (ReceiptMistake::ListsNothing, "instead of"),
    ] {
        let (backend, world) = CarelessReceipts::world::<B>(mistake).await;
        caught(check_lost_ack(&backend, world).await, because)?;
    }
    for (mistake, because) in [
        (ReceiptMistake::ForgetsEarlier, "is handed out instead of"),
        (ReceiptMistake::ListsNothing, "is handed out instead of"),
        (ReceiptMistake::ListsDelivered, "is handed out instead of"),
    ] {
        let (_backend, world) = CarelessReceipts::world::<B>(mistake).await;
        caught(check_acts(world, &all_read).await, because)?;
    }
    let (_backend, world) = CarelessReceipts::world::<B>(ReceiptMistake::AnswersBeforeCommit).await;
    caught(check_at_once(world).await, "is handed out instead of")?;
    for (mistake, because) in [
        (ReceiptMistake::RetriesDelivered, "pushed again"),
        (ReceiptMistake::AnswersBeforeCommit, "pushed again"),
        (ReceiptMistake::TellsBeforeCommit, "is told as"),
    ] {
        let (backend, world) = CarelessReceipts::world::<B>(mistake).await;
        caught(check_pushes(&backend, world).await, because)?;
    }
    Ok(())
}
