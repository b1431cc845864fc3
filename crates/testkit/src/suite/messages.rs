//! `MessageStore::append`: stored once, in order, all of a batch or nothing (T1, T2).

use std::sync::{Arc, Mutex};

use kefu_core::{Clock, IdSource, Seq, SessionId, StoreFault, UserId};
use kefu_messaging::{
    AppendOutcome, AppendRequest, AppendSnapshot, AppendVerdict, Fresh, Message, MessageStatus,
    Sender, decide_append,
};
use kefu_session::{Refusal, Session};

use crate::build::{from_agent, from_user, image, text, text_to_open, upload_row};
use crate::check::Ledger;
use crate::{Harness, World, stored};

/// Row, tip, version and event of one message.
pub async fn an_append_writes_message_tip_and_event<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let verdict = world.append(&[text(session.id, &sender, "k1", "hello")]).await.unwrap();
    let message = stored(verdict.outcomes[0].clone()).message;
    assert_eq!(message.seq, Seq(1));
    assert_eq!(message.status, MessageStatus::Pending);
    let found = world.stores.messages.find(message.msg_id).await.unwrap();
    assert_eq!(found.as_ref(), Some(message.as_ref()));
    let after = world.session(session.id).await;
    assert_eq!(after, session.appended(message.msg_id));
    assert_eq!(world.outbox().await.last(), verdict.events.first());
    let fresh = verdict.events[0].attachment::<Fresh>();
    assert!(fresh.is_some_and(|fresh| fresh.message == message), "for local handlers");
}

/// Any text that the rules let through comes back unchanged, also after a restart.
pub async fn any_text_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let long = "😀".repeat(500);
    let texts = [
        "line\n\ttab",
        "'; DROP TABLE cg_chat_message; --",
        "\"\\%_`$1 ?1 :x @y",
        "מימין לשמאל \u{202e}x",
        "e\u{301} ≠ \u{e9}",
        "  spaces kept  ",
        "\u{feff}\u{200b}x",
        &long,
    ];
    for (n, content) in texts.into_iter().enumerate() {
        world.say(session.id, &sender, &format!("键 {n} 😀'"), content).await;
    }
    let world = world.restarted(&mut harness).await;
    let history = world.history(session.id).await;
    let contents: Vec<_> = history.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(contents, texts);
    assert_eq!(history[3].client_msg_id.as_str(), "键 3 😀'");
}

/// Every kind of sender writes, each under keys of its own.
pub async fn senders_of_one_key_are_told_apart<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    // A user and an agent of the same name.
    let (session, user) = visitor(&world, "same").await;
    let admin = world.agent("same", 1).await;
    world.claim(&admin, session.id).await.unwrap();
    let senders = [user, from_agent(&admin), Sender::System, Sender::Bot];
    for sender in &senders {
        let message = world.say(session.id, sender, "k", sender.kind()).await;
        assert_eq!(message.content, sender.kind(), "nobody gets another sender's row (T2)");
    }
    let history = world.history(session.id).await;
    let written: Vec<_> = history.into_iter().map(|message| message.sender).collect();
    assert_eq!(written, senders);
}

/// T2: the same key again gets the original answer and changes nothing; other content is a conflict.
pub async fn a_repeated_key_gets_the_original_answer<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let first = world.say(session.id, &sender, "k", "hello").await;
    let (row, outbox) = (world.session(session.id).await, world.outbox().await);
    let again = stored(world.send(session.id, &sender, "k", "hello").await);
    assert_eq!((again.message, again.duplicate), (first, true));
    let other = world.send(session.id, &sender, "k", "other").await;
    assert_eq!(other, AppendOutcome::Refused(Refusal::Conflict));
    assert_eq!(world.session(session.id).await, row);
    assert_eq!(world.outbox().await, outbox);
    assert_eq!(world.history(session.id).await.len(), 1);
}

/// A batch over many sessions, with repeats inside and of stored messages, is answered in its order.
pub async fn a_batch_over_many_sessions_is_answered_in_order<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (s1, u1) = visitor(&world, "u1").await;
    let (s2, u2) = visitor(&world, "u2").await;
    let old = world.say(s1.id, &u1, "old", "old").await;
    let unknown = SessionId::new(9).unwrap();
    let batch = [
        text(s2.id, &u2, "1", "a"),
        text(s1.id, &u1, "1", "b"),
        text(s2.id, &u2, "1", "a"),
        text(s1.id, &u1, "old", "old"),
        text(s1.id, &u2, "x", "not mine"),
        text(unknown, &u1, "x", "nowhere"),
        text_to_open(&user_of(&u2), "2", "c"),
        text(s2.id, &u2, "1", "changed"),
        text(s1.id, &u1, "2", "d"),
    ];
    let verdict = world.append(&batch).await.unwrap();
    let answers: Vec<_> = verdict.outcomes.iter().map(summary).collect();
    let refused = |refusal| Err(refusal);
    assert_eq!(
        answers,
        [
            Ok((s2.id, 1, false)),
            Ok((s1.id, 2, false)),
            Ok((s2.id, 1, true)),
            Ok((s1.id, 1, true)),
            refused(Refusal::NotFound),
            refused(Refusal::NotFound),
            Ok((s2.id, 2, false)),
            refused(Refusal::Conflict),
            Ok((s1.id, 3, false)),
        ]
    );
    assert_eq!(verdict.messages.len(), 4);
    let mut acked: Vec<_> = verdict.messages.clone();
    acked.push(old);
    assert_sound(&world, [s1.id, s2.id], &acked).await;
    assert_eq!(world.session(s1.id).await.version, s1.version + 3);
}

/// An empty batch is no work.
pub async fn an_empty_batch_is_no_work<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let verdict = world.append(&[]).await.unwrap();
    assert!(verdict.outcomes.is_empty() && verdict.messages.is_empty());
    assert_eq!(world.outbox().await, []);
}

/// A large batch fits one transaction: six hundred messages over sixty sessions.
pub async fn a_large_batch_fits_one_transaction<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut parties = Vec::new();
    for n in 0..60 {
        parties.push(visitor(&world, &format!("u{n}")).await);
    }
    let batch: Vec<_> = (0..600)
        .map(|n| {
            let (session, sender) = &parties[n % 60];
            text(session.id, sender, &n.to_string(), "x")
        })
        .collect();
    let verdict = world.append(&batch).await.unwrap();
    assert_eq!(verdict.messages.len(), 600);
    let ids: Vec<_> = parties.iter().map(|(session, _)| session.id).collect();
    assert_sound(&world, ids, &verdict.messages).await;
}

/// The decision sees what the snapshot promises: sessions, open ones, earlier keys, uploads.
pub async fn the_snapshot_holds_what_it_promises<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (ended, u1) = visitor(&world, "u1").await;
    let old = world.say(ended.id, &u1, "old", "old").await;
    let ended = world.end_by_user(&ended).await;
    let (open, _) = visitor(&world, "u1").await;
    let (s2, u2) = visitor(&world, "u2").await;
    world.say(s2.id, &u2, "old", "another sender's").await;
    let now = world.clock.now();
    let mine = upload_row(open.id, &user_of(&u1), 1, now);
    let unknown = upload_row(open.id, &user_of(&u1), 2, now);
    world.stores.uploads.record(&mine).await.unwrap();
    let nobody = UserId::new("nobody").unwrap();
    let batch = [
        text_to_open(&user_of(&u1), "old", "old"),
        image(open.id, &u1, "i1", mine.path),
        image(open.id, &u1, "i2", unknown.path),
        text(SessionId::new(9).unwrap(), &u1, "n", "n"),
        text_to_open(&nobody, "n", "n"),
        text(ended.id, &u1, "late", "late"),
    ];
    let seen = look(&world, &batch).await;
    assert_eq!(seen.open, [(user_of(&u1), open.id)].into());
    assert_eq!(seen.sessions.get(&open.id), Some(&open));
    assert_eq!(seen.sessions.get(&ended.id), Some(&world.session(ended.id).await));
    assert_eq!(seen.sessions.len(), 2, "{:?}", seen.sessions.keys());
    assert_eq!(seen.stored, [old.as_ref().clone()]);
    assert_eq!(seen.uploads, [(mine.path, open.id)].into());
}

/// T2: the retry of a stored message gets its answer after the end, and without naming the session.
pub async fn a_retry_after_the_end_gets_the_original_answer<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let first = world.say(session.id, &sender, "k", "hello").await;
    world.end_by_user(&session).await;
    let named = stored(world.send(session.id, &sender, "k", "hello").await);
    assert_eq!((named.message, named.duplicate), (Arc::clone(&first), true));
    let request = text_to_open(&user_of(&sender), "k", "hello");
    let open = stored(world.append_one(request.clone()).await);
    assert_eq!((open.message, open.duplicate), (Arc::clone(&first), true));
    let fresh = world.send(session.id, &sender, "k2", "hello").await;
    assert_eq!(fresh, AppendOutcome::Refused(Refusal::SessionClosed));
    let (again, _) = visitor(&world, "u1").await;
    let later = stored(world.append_one(request).await);
    assert_eq!(later.message, first, "over all of that sender's sessions");
    assert_eq!(world.history(again.id).await, []);
}

/// M1: an image is one that was uploaded into the same session.
pub async fn an_image_belongs_to_its_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let (other, _) = visitor(&world, "u2").await;
    let now = world.clock.now();
    let mine = upload_row(session.id, &user_of(&sender), 1, now);
    let foreign = upload_row(other.id, &user_of(&sender), 2, now);
    let unknown = upload_row(session.id, &user_of(&sender), 3, now);
    world.stores.uploads.record(&mine).await.unwrap();
    world.stores.uploads.record(&foreign).await.unwrap();
    let sent = stored(world.append_one(image(session.id, &sender, "1", mine.path)).await).message;
    assert_eq!(sent.content, mine.path.to_string());
    assert_eq!(world.history(session.id).await, [sent.as_ref().clone()]);
    for (key, path) in [("2", foreign.path), ("3", unknown.path)] {
        let refused = world.append_one(image(session.id, &sender, key, path)).await;
        assert!(matches!(refused, AppendOutcome::Refused(Refusal::BadRequest(_))), "{refused:?}");
    }
    // The upload may be used again: only the key decides what is a repeat.
    let twice = stored(world.append_one(image(session.id, &sender, "4", mine.path)).await);
    assert!(!twice.duplicate);
}

/// One row that cannot be stored, and nothing of the batch is; the fault says that it never will be.
pub async fn a_poisoned_batch_stores_nothing<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let (other, u2) = visitor(&world, "u2").await;
    let old = world.say(session.id, &sender, "old", "old").await;
    let (row, outbox) = (world.session(session.id).await, world.outbox().await);
    let batch = [text(other.id, &u2, "fine", "fine"), text(session.id, &sender, "bad", "bad")];
    let poisons: [(&str, Poison); 3] = [
        ("a position given twice", |old, bad| bad.seq = old.seq),
        ("an id given twice", |old, bad| bad.msg_id = old.msg_id),
        ("a key stored twice", |old, bad| bad.client_msg_id = old.client_msg_id.clone()),
    ];
    for (what, poison) in poisons {
        let answer = append_spoilt(&world, &batch, &old, poison).await;
        assert!(matches!(answer, Err(StoreFault::Internal { .. })), "{what}: {answer:?}");
        assert_eq!(world.history(session.id).await, [old.as_ref().clone()], "{what}");
        assert_eq!(world.history(other.id).await, [], "{what}");
        assert_eq!(world.session(session.id).await, row, "{what}");
        assert_eq!(world.session(other.id).await, other, "{what}");
        assert_eq!(world.outbox().await, outbox, "{what}");
    }
    let verdict = world.append(&batch).await.unwrap();
    assert_sound(&world, [session.id, other.id], &verdict.messages).await;
}

/// A2: what was acknowledged is there after a restart, and its repeat still is one.
pub async fn a_restart_keeps_messages<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let acked = world.say(session.id, &sender, "k", "hello").await;
    world.clock.step_wall(-300_000);
    let world = world.restarted(&mut harness).await;
    let again = stored(world.send(session.id, &sender, "k", "hello").await);
    assert_eq!((again.message, again.duplicate), (Arc::clone(&acked), true));
    let next = world.say(session.id, &sender, "k2", "hello").await;
    assert!(next.msg_id > acked.msg_id, "T3");
    assert_sound(&world, [session.id], &[acked, next]).await;
}

pub(super) async fn visitor(world: &World, id: &str) -> (Session, Sender) {
    let session = world.open(id, 0).await;
    let sender = from_user(&session.user.user_id);
    (session, sender)
}

pub(super) fn user_of(sender: &Sender) -> UserId {
    UserId::new(sender.id()).unwrap()
}

pub(super) fn summary(outcome: &AppendOutcome) -> Result<(SessionId, i64, bool), Refusal> {
    match outcome {
        AppendOutcome::Stored(stored) => {
            Ok((stored.message.session_id, stored.message.seq.0, stored.duplicate))
        }
        AppendOutcome::Refused(refusal) => Err(*refusal),
    }
}

pub(super) async fn assert_sound(
    world: &World,
    sessions: impl IntoIterator<Item = SessionId> + Send,
    acked: &[Arc<Message>],
) {
    let sessions: Vec<_> = sessions.into_iter().collect();
    let ledger = Ledger::collect(&world.stores, sessions, []).await.unwrap();
    ledger.assert_sound();
    assert_eq!(ledger.missing_acks(acked), []);
}

/// Shows the batch's snapshot; stores nothing.
async fn look(world: &World, batch: &[AppendRequest]) -> AppendSnapshot {
    let seen = Mutex::new(AppendSnapshot::default());
    let decide = |snapshot: &AppendSnapshot, requests: &[AppendRequest], _: &dyn IdSource| {
        *seen.lock().unwrap() = snapshot.clone();
        let outcomes = vec![AppendOutcome::Refused(Refusal::Conflict); requests.len()];
        AppendVerdict { outcomes, ..AppendVerdict::default() }
    };
    world.stores.messages.append(batch, &decide, world.ids.as_ref()).await.unwrap();
    seen.into_inner().unwrap()
}

/// Spoils a message with something of an older one.
type Poison = fn(&Message, &mut Message);

/// Decides by the rules, then spoils the last message.
async fn append_spoilt(
    world: &World,
    batch: &[AppendRequest],
    old: &Message,
    poison: Poison,
) -> Result<AppendVerdict, StoreFault> {
    let context = world.context();
    let decide = |snapshot: &AppendSnapshot, requests: &[AppendRequest], ids: &dyn IdSource| {
        let mut verdict = decide_append(snapshot, requests, &context, ids);
        if let Some(last) = verdict.messages.last_mut() {
            poison(old, Arc::make_mut(last));
        }
        verdict
    };
    world.stores.messages.append(batch, &decide, world.ids.as_ref()).await
}
