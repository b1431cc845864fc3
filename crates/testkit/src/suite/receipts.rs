//! `MessageStore::record`: receipts, monotonic and idempotent in any order (M3).

use std::collections::BTreeMap;
use std::sync::Mutex;

use kefu_core::{AdminId, Caller, MsgId};
use kefu_messaging::{
    Message, MessageStatus, Receipt, ReceiptOutcome, ReceiptRequest, ReceiptSnapshot,
    ReceiptVerdict, Sender,
};
use kefu_session::{Refusal, Session};

use crate::build::{
    agent_caller, from_agent, from_user, receipt, receipt_up_to, supervisor_caller, unanswered,
    user_caller,
};
use crate::{Harness, World, race};

/// One session with its two sides.
struct Chat {
    session: Session,
    user: Caller,
    from_user: Sender,
    admin: AdminId,
    agent: Caller,
    from_agent: Sender,
}

async fn chat(world: &World) -> Chat {
    let admin = world.agent("a1", 5).await;
    let waiting = world.open("u1", 0).await;
    let session = world.claim(&admin, waiting.id).await.unwrap();
    let id = &session.user.user_id;
    Chat {
        user: user_caller(id),
        from_user: from_user(id),
        agent: agent_caller(&admin),
        from_agent: from_agent(&admin),
        admin,
        session,
    }
}

/// A status goes forward, is told once, and repeats change nothing.
pub async fn a_status_only_goes_forward<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let message = world.say(chat.session.id, &chat.from_user, "k", "x").await;
    let id = message.msg_id;
    let steps = [
        (Receipt::Delivered, Some(MessageStatus::Delivered)),
        (Receipt::Delivered, None),
        (Receipt::Read, Some(MessageStatus::Read)),
        (Receipt::Delivered, None),
        (Receipt::Read, None),
    ];
    for (kind, expected) in steps {
        let verdict = world.report(&[receipt(&chat.agent, id, kind)]).await.unwrap();
        assert_eq!(verdict.outcomes, [ReceiptOutcome::Taken]);
        assert_eq!(statuses(&verdict), expected.map(|status| (id, status)).into_iter().collect());
    }
    assert_eq!(world.report(&[unanswered(id)]).await.unwrap().changes, []);
    let world = world.restarted(&mut harness).await;
    let stored = world.stores.messages.find(id).await.unwrap().unwrap();
    assert_eq!(stored, Message { status: MessageStatus::Read, ..message.as_ref().clone() });
}

/// `failed` is not final: the receiver may turn up.
pub async fn a_failed_message_can_still_be_delivered<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let id = world.say(chat.session.id, &chat.from_agent, "k", "x").await.msg_id;
    world.report(&[unanswered(id)]).await.unwrap();
    assert_eq!(status_of(&world, id).await, MessageStatus::Failed);
    world.report(&[receipt(&chat.user, id, Receipt::Delivered)]).await.unwrap();
    assert_eq!(status_of(&world, id).await, MessageStatus::Delivered);
}

/// The change names the message with its new status and the session as it stands.
pub async fn a_change_says_whom_to_tell<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let message = world.say(chat.session.id, &chat.from_user, "k", "x").await;
    let reports = [receipt(&chat.agent, message.msg_id, Receipt::Read)];
    let verdict = world.report(&reports).await.unwrap();
    let change = &verdict.changes[0];
    let expected = Message { status: MessageStatus::Read, ..message.as_ref().clone() };
    assert_eq!(change.message, expected);
    assert_eq!(change.session, world.session(chat.session.id).await);
}

/// Only the receiver reports; what does not exist or is not theirs is `not_found`.
pub async fn only_a_receiver_may_report<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let id = world.say(chat.session.id, &chat.from_user, "k", "x").await.msg_id;
    let stranger = user_caller(&world.open("u2", 0).await.user.user_id);
    let colleague = agent_caller(&world.agent("a2", 5).await);
    let unknown = MsgId::new(5).unwrap();
    let reports = [
        receipt(&chat.user, id, Receipt::Read),
        receipt(&stranger, id, Receipt::Read),
        receipt(&colleague, id, Receipt::Read),
        receipt(&supervisor_caller("s1"), id, Receipt::Read),
        receipt(&chat.agent, unknown, Receipt::Read),
    ];
    let verdict = world.report(&reports).await.unwrap();
    let refusals = [
        Refusal::Forbidden,
        Refusal::NotFound,
        Refusal::NotFound,
        Refusal::Forbidden,
        Refusal::NotFound,
    ];
    assert_eq!(verdict.outcomes, refusals.map(ReceiptOutcome::Refused));
    assert_eq!(status_of(&world, id).await, MessageStatus::Pending);
    // The refused do not spoil the batch of those who may.
    let mixed = [reports[1].clone(), receipt(&chat.agent, id, Receipt::Delivered)];
    assert_eq!(world.report(&mixed).await.unwrap().changes.len(), 1);
}

/// M2: after a transfer the new owner is the receiver and the old one is not.
pub async fn the_receiver_is_who_owns_the_session_now<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let id = world.say(chat.session.id, &chat.from_user, "k", "x").await.msg_id;
    let next = world.agent("a2", 5).await;
    world.transfer(&chat.agent, chat.session.id, &next).await.unwrap();
    let reports = [
        receipt(&chat.agent, id, Receipt::Read),
        receipt(&agent_caller(&next), id, Receipt::Delivered),
    ];
    let verdict = world.report(&reports).await.unwrap();
    let expected = [ReceiptOutcome::Refused(Refusal::NotFound), ReceiptOutcome::Taken];
    assert_eq!(verdict.outcomes, expected);
    assert_eq!(status_of(&world, id).await, MessageStatus::Delivered);
    assert_ne!(chat.admin, next);
}

/// A cumulative report covers all earlier messages of the other side in that session, nothing else.
pub async fn a_cumulative_report_covers_what_came_before<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let other = world.open("u2", 0).await;
    let elsewhere = world.say(other.id, &from_user(&other.user.user_id), "k", "x").await.msg_id;
    let mut mine = Vec::new();
    let mut theirs = Vec::new();
    for n in 0..120 {
        let key = n.to_string();
        mine.push(world.say(chat.session.id, &chat.from_user, &key, "x").await.msg_id);
        theirs.push(world.say(chat.session.id, &chat.from_agent, &key, "x").await.msg_id);
    }
    world.report(&[receipt(&chat.agent, mine[3], Receipt::Read)]).await.unwrap();
    let upto = [receipt_up_to(&chat.agent, mine[110], Receipt::Delivered)];
    let verdict = world.report(&upto).await.unwrap();
    let expected: BTreeMap<_, _> = mine[..=110]
        .iter()
        .filter(|id| **id != mine[3])
        .map(|id| (*id, MessageStatus::Delivered))
        .collect();
    assert_eq!(statuses(&verdict), expected);
    assert!(verdict.changes.is_sorted_by(|a, b| a.message.msg_id < b.message.msg_id));
    assert_eq!(status_of(&world, mine[3]).await, MessageStatus::Read);
    assert_eq!(status_of(&world, mine[111]).await, MessageStatus::Pending);
    assert_eq!(status_of(&world, theirs[0]).await, MessageStatus::Pending);
    assert_eq!(status_of(&world, elsewhere).await, MessageStatus::Pending);
}

/// The decision sees the named messages, for a cumulative one also the earlier ones that it can raise,
/// and sessions.
pub async fn the_snapshot_holds_what_it_promises<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let mut sent = Vec::new();
    for n in 0..5 {
        let key = n.to_string();
        sent.push(world.say(chat.session.id, &chat.from_user, &key, "x").await);
        world.say(chat.session.id, &chat.from_agent, &key, "x").await;
    }
    let read = [receipt(&chat.agent, sent[1].msg_id, Receipt::Read)];
    world.report(&read).await.unwrap();
    let unknown = MsgId::new(5).unwrap();
    let alone = [receipt(&chat.agent, sent[3].msg_id, Receipt::Read), unanswered(unknown)];
    let seen = look(&world, &alone).await;
    assert_eq!(seen.messages, [(sent[3].msg_id, sent[3].as_ref().clone())].into());
    assert_eq!(seen.sessions.len(), 1);
    assert_eq!(seen.sessions[&chat.session.id], world.session(chat.session.id).await);
    let upto = look(&world, &[receipt_up_to(&chat.agent, sent[3].msg_id, Receipt::Read)]).await;
    let ids: Vec<_> = upto.messages.keys().copied().collect();
    let expected = [sent[0].msg_id, sent[2].msg_id, sent[3].msg_id];
    assert_eq!(ids, expected, "not the read one, not the later one, not the other side's");
    let delivered = [receipt(&chat.agent, sent[0].msg_id, Receipt::Delivered)];
    world.report(&delivered).await.unwrap();
    let upto =
        look(&world, &[receipt_up_to(&chat.agent, sent[3].msg_id, Receipt::Delivered)]).await;
    let ids: Vec<_> = upto.messages.keys().copied().collect();
    assert_eq!(ids, [sent[2].msg_id, sent[3].msg_id], "only what the report can still raise");
}

/// All kinds of reports at once: the highest status stands, and each step is told at most once.
pub async fn reports_at_once_end_at_the_highest_status<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(world.say(chat.session.id, &chat.from_user, &n.to_string(), "x").await.msg_id);
    }
    let verdicts = race(60, |n| {
        let (world, ids, agent) = (world.clone(), ids.clone(), chat.agent.clone());
        async move {
            let id = ids[n % 10];
            let report = match n % 4 {
                0 => receipt(&agent, id, Receipt::Delivered),
                1 => unanswered(id),
                2 => receipt_up_to(&agent, id, Receipt::Delivered),
                _ => receipt(&agent, id, Receipt::Read),
            };
            world.report(&[report]).await.unwrap()
        }
    })
    .await;
    let last = [receipt_up_to(&chat.agent, ids[9], Receipt::Delivered)];
    world.report(&last).await.unwrap();
    let mut told: BTreeMap<MsgId, Vec<MessageStatus>> = BTreeMap::new();
    for change in verdicts.iter().flat_map(|verdict| &verdict.changes) {
        told.entry(change.message.msg_id).or_default().push(change.message.status);
    }
    for (n, id) in ids.iter().enumerate() {
        let told = told.remove(id).unwrap_or_default();
        for status in [MessageStatus::Failed, MessageStatus::Delivered, MessageStatus::Read] {
            assert!(told.iter().filter(|told| **told == status).count() <= 1, "{told:?}");
        }
        let expected = if n % 2 == 1 { MessageStatus::Read } else { MessageStatus::Delivered };
        assert_eq!(status_of(&world, *id).await, expected, "message {n}");
    }
}

/// Receipts and appends of one session do not disturb each other.
pub async fn reports_race_with_appends<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    let first = world.say(chat.session.id, &chat.from_user, "first", "x").await.msg_id;
    race(30, |n| {
        let (world, agent) = (world.clone(), chat.agent.clone());
        let (session, sender) = (chat.session.id, chat.from_user.clone());
        async move {
            if n % 2 == 0 {
                world.say(session, &sender, &n.to_string(), "x").await;
            } else {
                let report = [receipt_up_to(&agent, first, Receipt::Read)];
                world.report(&report).await.unwrap();
            }
        }
    })
    .await;
    let ledger = crate::check::Ledger::collect(&world.stores, [chat.session.id], [chat.admin]);
    ledger.await.unwrap().assert_sound();
    assert_eq!(status_of(&world, first).await, MessageStatus::Read);
}

/// A large batch of reports fits one transaction; an empty one is no work.
pub async fn a_large_batch_fits_one_transaction<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let chat = chat(&world).await;
    world.say_many(chat.session.id, &chat.from_agent, 600).await;
    let sent = world.history(chat.session.id).await;
    let batch: Vec<_> = sent
        .iter()
        .map(|message| receipt(&chat.user, message.msg_id, Receipt::Delivered))
        .collect();
    assert_eq!(world.report(&batch).await.unwrap().changes.len(), 600);
    assert!(world.report(&[]).await.unwrap().outcomes.is_empty());
    let stored = world.history(chat.session.id).await;
    assert!(stored.iter().all(|message| message.status == MessageStatus::Delivered));
}

fn statuses(verdict: &ReceiptVerdict) -> BTreeMap<MsgId, MessageStatus> {
    verdict.changes.iter().map(|change| (change.message.msg_id, change.message.status)).collect()
}

async fn status_of(world: &World, id: MsgId) -> MessageStatus {
    world.stores.messages.find(id).await.unwrap().unwrap().status
}

/// Shows the batch's snapshot; records nothing.
async fn look(world: &World, batch: &[ReceiptRequest]) -> ReceiptSnapshot {
    let seen = Mutex::new(ReceiptSnapshot::default());
    let decide = |snapshot: &ReceiptSnapshot, requests: &[ReceiptRequest]| {
        *seen.lock().unwrap() = snapshot.clone();
        let outcomes = vec![ReceiptOutcome::Taken; requests.len()];
        ReceiptVerdict { outcomes, ..ReceiptVerdict::default() }
    };
    world.stores.messages.record(batch, &decide).await.unwrap();
    seen.into_inner().unwrap()
}
