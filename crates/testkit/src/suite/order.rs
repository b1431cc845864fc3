//! `MessageStore::append` under load: one order per session, whatever runs at once (T1, T2, S2).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kefu_core::{IdSource, MsgId};
use kefu_messaging::{AppendOutcome, AppendRequest, AppendSnapshot, Sender, decide_append};
use kefu_session::{Refusal, Session};

use super::messages::{assert_sound, summary, visitor};
use crate::build::{from_agent, text};
use crate::check::Ledger;
use crate::{Harness, World, race, stored};

/// 2.1: a hundred tasks with one key: one row, a hundred equal answers, one event.
pub async fn a_hundred_sends_of_one_key_store_one_row<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let answers = race(100, |_| {
        let (world, sender) = (world.clone(), sender.clone());
        async move { stored(world.send(session.id, &sender, "k", "hello").await) }
    })
    .await;
    assert_eq!(answers.iter().filter(|answer| !answer.duplicate).count(), 1);
    assert!(answers.windows(2).all(|pair| pair[0].message == pair[1].message));
    assert_eq!(world.history(session.id).await.len(), 1);
    let events = world.outbox_of(&format!("session:{}", session.id)).await;
    assert_eq!(events.len(), 2, "opened, stored");
}

/// T1: a hundred at once in one session: 1 … 100 without gaps, ids and times in the same order.
pub async fn a_hundred_sends_to_one_session_are_in_order<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let answers = race(100, |n| {
        let (world, sender) = (world.clone(), sender.clone());
        async move {
            if n % 10 == 0 {
                world.clock.advance(Duration::from_millis(1));
            }
            world.say(session.id, &sender, &n.to_string(), "hello").await
        }
    })
    .await;
    let seqs: BTreeSet<_> = answers.iter().map(|message| message.seq.0).collect();
    assert_eq!(seqs, (1..=100).collect());
    assert_sound(&world, [session.id], &answers).await;
}

/// T1 under clock steps of five minutes either way, and over a restart (T3).
pub async fn clock_steps_do_not_disturb_the_order<H: Harness>() {
    let (mut harness, mut world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let mut acked = Vec::new();
    for (n, step) in [0, 300_000, -300_000, -300_000, 0, 300_000, -1, 1].into_iter().enumerate() {
        world.clock.step_wall(step);
        acked.push(world.say(session.id, &sender, &format!("a{n}"), "x").await);
        acked.push(world.say(session.id, &sender, &format!("b{n}"), "x").await);
        if n == 3 {
            world = world.restarted(&mut harness).await;
        }
    }
    assert_sound(&world, [session.id], &acked).await;
}

/// Clock steps while many write at once.
pub async fn clock_steps_race_with_sends<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let answers = race(60, |n| {
        let (world, sender) = (world.clone(), sender.clone());
        async move {
            world.clock.step_wall(if n % 2 == 0 { 300_000 } else { -300_000 });
            world.say(session.id, &sender, &n.to_string(), "x").await
        }
    })
    .await;
    assert_sound(&world, [session.id], &answers).await;
}

/// Batches over the same sessions in opposite orders neither deadlock nor tear the order.
pub async fn overlapping_batches_do_not_deadlock<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut parties = Vec::new();
    for n in 0..5 {
        parties.push(visitor(&world, &format!("u{n}")).await);
    }
    let verdicts = race(20, |n| {
        let (world, mut parties) = (world.clone(), parties.clone());
        if n % 2 == 0 {
            parties.reverse();
        }
        async move {
            let of = |(session, sender): &(Session, Sender), m: usize| {
                text(session.id, sender, &format!("{n}-{m}"), "x")
            };
            let batch: Vec<_> =
                (0..3).flat_map(|m| parties.iter().map(move |party| of(party, m))).collect();
            world.append(&batch).await.unwrap()
        }
    })
    .await;
    let acked: Vec<_> = verdicts.into_iter().flat_map(|verdict| verdict.messages).collect();
    assert_eq!(acked.len(), 300);
    assert_sound(&world, parties.iter().map(|(session, _)| session.id), &acked).await;
}

/// A decision may run more than once; only what the returned verdict lists is stored.
pub async fn only_the_returned_verdict_is_stored<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, sender) = visitor(&world, "u1").await;
    let thought_up = Arc::new(Mutex::new(BTreeSet::new()));
    let returned = race(30, |n| {
        let (world, sender) = (world.clone(), sender.clone());
        let thought_up = Arc::clone(&thought_up);
        async move {
            let context = world.context();
            let decide =
                |snapshot: &AppendSnapshot, requests: &[AppendRequest], ids: &dyn IdSource| {
                    ids.next_after(0);
                    let verdict = decide_append(snapshot, requests, &context, ids);
                    thought_up.lock().unwrap().extend(verdict.messages.iter().map(|m| m.msg_id));
                    verdict
                };
            let batch = [text(session.id, &sender, &n.to_string(), "x")];
            world.stores.messages.append(&batch, &decide, world.ids.as_ref()).await.unwrap()
        }
    })
    .await;
    let acked: Vec<_> = returned.into_iter().flat_map(|verdict| verdict.messages).collect();
    let kept: BTreeSet<MsgId> = acked.iter().map(|message| message.msg_id).collect();
    assert_sound(&world, [session.id], &acked).await;
    let burnt: Vec<_> = thought_up.lock().unwrap().difference(&kept).copied().collect();
    for id in burnt {
        assert_eq!(world.stores.messages.find(id).await.unwrap(), None);
    }
}

/// S2: a message that races with the end is stored before it, or refused; never stored after.
pub async fn sends_race_with_the_end<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    for round in 0..5 {
        let (session, sender) = visitor(&world, &format!("u{round}")).await;
        let answers = race(20, |n| {
            let (world, sender, session) = (world.clone(), sender.clone(), session.clone());
            async move {
                if n == 10 {
                    world.end_by_user(&session).await;
                    return None;
                }
                Some(world.send(session.id, &sender, &n.to_string(), "x").await)
            }
        })
        .await;
        let answers: Vec<_> = answers.into_iter().flatten().collect();
        let accepted = answers.iter().filter(|answer| summary(answer).is_ok()).count();
        let refused = AppendOutcome::Refused(Refusal::SessionClosed);
        assert_eq!(answers.iter().filter(|answer| **answer == refused).count(), 19 - accepted);
        assert_eq!(world.history(session.id).await.len(), accepted);
        assert_sound(&world, [session.id], &[]).await;
    }
}

/// A3: an agent's message that races with the transfer is stored before it, or refused.
pub async fn sends_race_with_a_transfer<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (session, _) = visitor(&world, "u1").await;
    let (a, b) = (world.agent("a", 5).await, world.agent("b", 5).await);
    world.claim(&a, session.id).await.unwrap();
    let answers = race(20, |n| {
        let (world, a, b) = (world.clone(), a.clone(), b.clone());
        async move {
            if n == 10 {
                let caller = crate::build::agent_caller(&a);
                world.transfer(&caller, session.id, &b).await.unwrap();
                return None;
            }
            Some(world.send(session.id, &from_agent(&a), &n.to_string(), "x").await)
        }
    })
    .await;
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    let accepted = answers.iter().filter(|answer| summary(answer).is_ok()).count();
    assert_eq!(world.history(session.id).await.len(), accepted);
    let late = world.send(session.id, &from_agent(&a), "late", "x").await;
    assert_eq!(late, AppendOutcome::Refused(Refusal::NotFound));
    world.say(session.id, &from_agent(&b), "mine", "x").await;
    Ledger::collect(&world.stores, [session.id], [a, b]).await.unwrap().assert_sound();
}
