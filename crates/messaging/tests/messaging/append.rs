//! The rule of a send (T1, T2, A3, S2) as a pure function over a batch.

use crate::common::{SnapshotBuilder, context, decide, outcome, stored_message};
use kefu_core::snowflake::timestamp_of;
use kefu_core::{IdSource, ManualClock, ManualIds, MsgId, Seq, SnowflakeIds, Timestamp, WorkerId};
use kefu_events::Event;
use kefu_messaging::{AppendOutcome, AppendRequest, Fresh, MessageStatus, decide_append};
use kefu_session::Refusal;
use kefu_testkit::build::{
    admin, from_agent, from_user, image, text, text_to_open, upload_row, user,
};
use kefu_testkit::stored;
use std::sync::Arc;

fn refused(outcome: &AppendOutcome) -> Option<Refusal> {
    match outcome {
        AppendOutcome::Stored(_) => None,
        AppendOutcome::Refused(refusal) => Some(*refusal),
    }
}

#[test]
fn positions_ids_and_times_rise_together() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "a1");
    let user = from_user(&session.user.user_id);
    let agent = from_agent(&admin("a1"));
    let batch: Vec<_> = (0..200)
        .map(|n| text(session.id, if n % 3 == 0 { &agent } else { &user }, &format!("k{n}"), "hi"))
        .collect();
    let verdict = decide(&world.snapshot([&session]), &batch);
    for (message, seq) in verdict.messages.iter().zip(1..) {
        assert_eq!(message.seq, Seq(seq), "T1");
        assert_eq!(message.create_time, timestamp_of(message.msg_id.get()), "T1");
        assert_eq!(message.status, MessageStatus::Pending);
    }
    assert!(verdict.messages.is_sorted_by(|a, b| a.msg_id < b.msg_id), "T1");
    let [tip] = &verdict.tips[..] else { panic!("one tip: {:?}", verdict.tips) };
    let last = verdict.messages.last().expect("stored");
    assert_eq!((tip.last_seq, tip.last_msg_id), (Seq(200), last.msg_id));
    assert_eq!(tip.version, session.version + 200);
}

#[test]
fn a_clock_that_steps_back_or_another_node_never_lowers_an_id() {
    let clock = Arc::new(ManualClock::default());
    let ids = SnowflakeIds::new(clock.clone(), WorkerId::default(), 0);
    let world = SnapshotBuilder::new();
    // Written by a node whose clock runs ten minutes ahead.
    let ahead = SnowflakeIds::new(
        Arc::new(ManualClock::at(Timestamp(1_769_558_400_000 + 600_000))),
        WorkerId::new(900).expect("in range"),
        0,
    );
    let floor = MsgId::next_after(&ahead, 0);
    let mut session = world.active("u1", "a1").appended(floor);
    for step in [0, -3_600_000, 60_000, -1] {
        clock.step_wall(step);
        let request = text(session.id, &from_user(&session.user.user_id), &format!("{step}"), "hi");
        let verdict = decide_append(&world.snapshot([&session]), &[request], &context(), &ids);
        let message = &verdict.messages[0];
        let before = session.last_msg_id.expect("written before");
        assert!(message.msg_id > before, "T1: step {step}");
        assert!(message.create_time >= timestamp_of(before.get()), "T1: step {step}");
        session = session.appended(message.msg_id);
    }
}

#[test]
fn the_first_message_is_younger_than_its_session() {
    let world = SnapshotBuilder::new();
    let session = world.waiting("u1");
    let late: &dyn IdSource = &ManualIds::default();
    let request = text(session.id, &from_user(&session.user.user_id), "k", "hi");
    let verdict = decide_append(&world.snapshot([&session]), &[request], &context(), late);
    assert!(verdict.messages[0].msg_id.get() > session.id.get());
}

#[test]
fn a_repeat_gets_the_original_answer_even_after_the_end() {
    let world = SnapshotBuilder::new();
    let session = world.ended("u1", "a1");
    for sender in [from_user(&session.user.user_id), from_agent(&admin("a1"))] {
        let old = stored_message(&session, &sender, "k", "hi", 5);
        let snapshot = world.snapshot([&session]).with_stored(&old);
        let again = stored(outcome(&snapshot, text(session.id, &sender, "k", "hi")));
        assert!(again.duplicate && *again.message == old, "T2");
        let fresh = outcome(&snapshot, text(session.id, &sender, "other", "hi"));
        assert_eq!(refused(&fresh), Some(Refusal::SessionClosed), "S2, for agents too");
    }
}

#[test]
fn a_transferred_agent_repeats_what_was_stored_and_writes_nothing_new() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "new");
    let former = from_agent(&admin("old"));
    let old = stored_message(&session, &former, "k", "hi", 5);
    let snapshot = world.snapshot([&session]).with_stored(&old);
    let again = stored(outcome(&snapshot, text(session.id, &former, "k", "hi")));
    assert_eq!(again.message.msg_id, old.msg_id, "S4, T2");
    let fresh = outcome(&snapshot, text(session.id, &former, "k2", "hi"));
    assert_eq!(refused(&fresh), Some(Refusal::NotFound), "A3");
}

#[test]
fn the_same_key_with_other_content_is_a_conflict() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "a1");
    let sender = from_user(&session.user.user_id);
    let old = stored_message(&session, &sender, "k", "hi", 5);
    let path = upload_row(session.id, &session.user.user_id, 1, Timestamp(0)).path;
    let snapshot = world.snapshot([&session]).with_stored(&old).with_upload(path, session.id);
    let other = outcome(&snapshot, text(session.id, &sender, "k", "ho"));
    assert_eq!(refused(&other), Some(Refusal::Conflict), "T2");
    let other_type = outcome(&snapshot, image(session.id, &sender, "k", path));
    assert_eq!(refused(&other_type), Some(Refusal::Conflict), "T2");
}

#[test]
fn a_key_belongs_to_its_sender() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "a1");
    let user = from_user(&session.user.user_id);
    let old = stored_message(&session, &user, "k", "secret", 5);
    let snapshot = world.snapshot([&session]).with_stored(&old);
    let fresh =
        stored(outcome(&snapshot, text(session.id, &from_agent(&admin("a1")), "k", "mine")));
    assert!(!fresh.duplicate, "T2: another sender's key is another key");
    let stranger =
        text(session.id, &from_user(&kefu_testkit::build::user("u2", 0).user_id), "k", "secret");
    assert_eq!(refused(&outcome(&snapshot, stranger)), Some(Refusal::NotFound), "A3");
}

#[test]
fn duplicates_inside_one_batch_collapse() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "a1");
    let user = &session.user.user_id;
    let sender = from_user(user);
    let batch = [
        text(session.id, &sender, "k", "hi"),
        text(session.id, &sender, "k", "hi"),
        text_to_open(user, "k", "hi"),
        text(session.id, &sender, "k", "ho"),
        text_to_open(user, "k2", "hi"),
        text(session.id, &sender, "k2", "hi"),
    ];
    let verdict = decide(&world.snapshot([&session]), &batch);
    assert_eq!(verdict.messages.len(), 2, "T2");
    assert_eq!(verdict.events.len(), 2);
    let answers: Vec<_> = verdict
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            AppendOutcome::Stored(stored) => Ok((stored.message.seq.0, stored.duplicate)),
            AppendOutcome::Refused(refusal) => Err(*refusal),
        })
        .collect();
    let expected = [
        Ok((1, false)),
        Ok((1, true)),
        Ok((1, true)),
        Err(Refusal::Conflict),
        Ok((2, false)),
        Ok((2, true)),
    ];
    assert_eq!(answers, expected);
}

#[test]
fn without_a_session_the_key_is_looked_up_in_all_of_the_senders() {
    let world = SnapshotBuilder::new();
    let (before, now) = (world.ended("u1", "a1"), world.waiting("u1"));
    let user = &now.user.user_id;
    let old = stored_message(&before, &from_user(user), "k", "hi", 3);
    let snapshot = world.snapshot([&before, &now]).with_stored(&old);
    let again = stored(outcome(&snapshot, text_to_open(user, "k", "hi")));
    assert_eq!((again.message.session_id, again.duplicate), (before.id, true), "T2");
    // Named, the key is the session's own.
    let named = stored(outcome(&snapshot, text(now.id, &from_user(user), "k", "hi")));
    assert_eq!((named.message.session_id, named.duplicate), (now.id, false), "T2");
}

#[test]
fn a_user_without_an_open_session_is_told_not_found() {
    let world = SnapshotBuilder::new();
    let ended = world.ended("u1", "a1");
    let request = text_to_open(&ended.user.user_id, "k", "hi");
    assert_eq!(refused(&outcome(&world.snapshot([&ended]), request)), Some(Refusal::NotFound));
}

#[test]
fn only_the_two_parties_of_the_moment_write() {
    let world = SnapshotBuilder::new();
    let waiting = world.waiting("u1");
    let active = world.active("u2", "a1");
    let snapshot = world.snapshot([&waiting, &active]);
    let try_to = |request: AppendRequest| refused(&outcome(&snapshot, request));
    let user = |id: &str| from_user(&user(id, 0).user_id);
    assert_eq!(try_to(text(waiting.id, &user("u1"), "k", "x")), None, "2.7: stored while waiting");
    assert_eq!(try_to(text(active.id, &from_agent(&admin("a1")), "k", "x")), None);
    let not_found = Some(Refusal::NotFound);
    assert_eq!(try_to(text(waiting.id, &from_agent(&admin("a1")), "k", "x")), not_found, "A3");
    assert_eq!(try_to(text(active.id, &from_agent(&admin("a2")), "k", "x")), not_found, "A3");
    assert_eq!(try_to(text(active.id, &user("u1"), "k", "x")), not_found, "A3");
    let unknown = kefu_core::SessionId::new(9_999_999).expect("positive");
    assert_eq!(try_to(text(unknown, &user("u1"), "k", "x")), not_found);
}

#[test]
fn an_image_must_be_an_upload_of_the_same_session() {
    let world = SnapshotBuilder::new();
    let (one, two) = (world.active("u1", "a1"), world.active("u2", "a1"));
    let row = |session: &kefu_session::Session, name| {
        upload_row(session.id, &session.user.user_id, name, Timestamp(0)).path
    };
    let (mine, foreign, unknown) = (row(&one, 1), row(&two, 2), row(&one, 3));
    let snapshot =
        world.snapshot([&one, &two]).with_upload(mine, one.id).with_upload(foreign, two.id);
    let sender = from_user(&one.user.user_id);
    let send = |path| outcome(&snapshot, image(one.id, &sender, "k", path));
    assert_eq!(stored(send(mine)).message.content, mine.to_string(), "M1: no query is stored");
    for path in [foreign, unknown] {
        assert!(matches!(refused(&send(path)), Some(Refusal::BadRequest(_))), "M1");
    }
}

#[test]
fn one_batch_over_many_sessions_keeps_each_in_order() {
    let world = SnapshotBuilder::new();
    let sessions: Vec<_> = (0..5).map(|n| world.active(&format!("u{n}"), "a1")).collect();
    let batch: Vec<_> = (0..50)
        .map(|n| {
            let session = &sessions[n % 5];
            text(session.id, &from_user(&session.user.user_id), &format!("k{n}"), &format!("{n}"))
        })
        .collect();
    let verdict = decide(&world.snapshot(&sessions), &batch);
    assert_eq!((verdict.outcomes.len(), verdict.tips.len()), (50, 5));
    for session in &sessions {
        let of_session: Vec<_> =
            verdict.messages.iter().filter(|m| m.session_id == session.id).collect();
        let contents: Vec<usize> =
            of_session.iter().map(|m| m.content.parse().expect("a number")).collect();
        assert_eq!(contents.len(), 10);
        assert!(contents.is_sorted(), "M6: requests of one session keep their order");
        assert!(of_session.iter().zip(1..).all(|(m, seq)| m.seq == Seq(seq)), "T1");
    }
}

#[test]
fn a_refusal_in_a_batch_leaves_no_gap() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "a1");
    let user = from_user(&session.user.user_id);
    let stranger = from_agent(&admin("a2"));
    let batch = [
        text(session.id, &user, "1", "x"),
        text(session.id, &stranger, "2", "x"),
        text(session.id, &user, "3", "x"),
    ];
    let verdict = decide(&world.snapshot([&session]), &batch);
    let seqs: Vec<_> = verdict.messages.iter().map(|message| message.seq.0).collect();
    assert_eq!(seqs, [1, 2], "T1");
    assert_eq!(refused(&verdict.outcomes[1]), Some(Refusal::NotFound));
}

#[test]
fn each_message_has_its_event_with_the_owner_of_that_moment() {
    let world = SnapshotBuilder::new();
    let session = world.active("u1", "a1");
    let request = text(session.id, &from_user(&session.user.user_id), "k", "hi");
    let verdict = decide(&world.snapshot([&session]), &[request]);
    let message = &verdict.messages[0];
    let [event] = &verdict.events[..] else { panic!("one event: {:?}", verdict.events) };
    let expected = Event::MessageStored {
        session_id: session.id,
        msg_id: message.msg_id,
        seq: Seq(1),
        user_id: session.user.user_id.clone(),
        admin_id: Some(admin("a1")),
        version: session.version + 1,
    };
    assert_eq!(event.event, expected);
    let fresh = event.attachment::<Fresh>().expect("at hand for local handlers");
    assert!(Arc::ptr_eq(&fresh.message, message), "N2: not read back");
}
