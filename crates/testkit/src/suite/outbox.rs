//! `Outbox`: committed events until they are dealt with (N2).

use std::time::Duration;

use kefu_assignment::Change;
use kefu_core::{Actor, AdminId, Clock, EventId, MsgId, NoteId, Seq, SessionId, Timestamp, UserId};
use kefu_events::{Envelope, Event, How, RequeueReason};

use crate::{Harness, World, race};

/// Every kind of event comes back as it was written, also after a restart.
pub async fn every_event_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let written = write(&world, every_event()).await;
    assert_eq!(world.outbox().await, written);
    let world = world.restarted(&mut harness).await;
    assert_eq!(world.outbox().await, written);
}

/// Rows come in id order, cut by time, position and limit; pages neither repeat nor skip.
pub async fn unconfirmed_rows_come_in_pages<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut written = Vec::new();
    for n in 0..25 {
        written.extend(write(&world, [online(&format!("a{n}"))]).await);
        world.clock.advance(Duration::from_secs(1));
    }
    let list = async |before, after, limit| {
        world.stores.outbox.list_unconfirmed(before, after, limit).await.unwrap()
    };
    let always = Timestamp(i64::MAX);
    let mut pages = Vec::new();
    loop {
        let after = pages.last().map(|row: &Envelope| row.id);
        let page = list(always, after, 10).await;
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 10);
        pages.extend(page);
    }
    assert_eq!(pages, written);
    assert_eq!(list(written[7].time, None, 100).await, written[..7], "before, not at");
    assert_eq!(list(written[7].time, Some(written[3].id), 2).await, written[4..6]);
    assert_eq!(list(always, EventId::new(i64::MAX).ok(), 10).await, []);
}

/// What waits is counted, up to a limit.
pub async fn unconfirmed_rows_are_counted<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let outbox = &world.stores.outbox;
    assert_eq!(outbox.count_unconfirmed(10).await.unwrap(), 0);
    let written = write(&world, (0..5).map(|n| online(&format!("a{n}")))).await;
    assert_eq!(outbox.count_unconfirmed(10).await.unwrap(), 5);
    assert_eq!(outbox.count_unconfirmed(3).await.unwrap(), 3);
    outbox.confirm(&[written[1].id, written[4].id], world.clock.now()).await.unwrap();
    assert_eq!(outbox.count_unconfirmed(10).await.unwrap(), 3);
}

/// N4: what is not a stored message comes again from any position, confirmed or not.
pub async fn changes_are_listed_without_messages<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let written = write(&world, every_event()).await;
    let changes: Vec<_> =
        written.iter().filter(|row| row.event.kind() != "message_stored").cloned().collect();
    assert_eq!(changes.len() + 2, written.len());
    let outbox = &world.stores.outbox;
    outbox.confirm(&[changes[0].id, changes[2].id], world.clock.now()).await.unwrap();
    assert_eq!(outbox.list_changes(0, 100).await.unwrap(), changes);
    let above = changes[0].id.get();
    assert_eq!(outbox.list_changes(above, 2).await.unwrap(), changes[1..3]);
    assert_eq!(outbox.list_changes(i64::MAX, 2).await.unwrap(), []);
}

/// Confirmed rows are not listed again; unknown ids, repeats and empty lists are harmless.
pub async fn confirming_is_idempotent<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let rows = write(&world, ["a1", "a2", "a3"].map(online)).await;
    let now = world.clock.now();
    let outbox = &world.stores.outbox;
    let unknown = EventId::new(5).unwrap();
    outbox.confirm(&[], now).await.unwrap();
    outbox.confirm(&[rows[1].id, unknown, rows[1].id], now).await.unwrap();
    outbox.confirm(&[rows[1].id], now).await.unwrap();
    assert_eq!(world.outbox().await, [rows[0].clone(), rows[2].clone()]);
    let world = world.restarted(&mut harness).await;
    assert_eq!(world.outbox().await, [rows[0].clone(), rows[2].clone()]);
}

/// A thousand confirmations fit one call.
pub async fn a_large_confirmation_fits_one_call<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let rows = write(&world, (0..1_024).map(|n| online(&format!("a{n}")))).await;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    world.stores.outbox.confirm(&ids, world.clock.now()).await.unwrap();
    assert_eq!(world.outbox().await, []);
}

/// Only rows confirmed before the given time go, up to the limit, each counted once.
pub async fn only_confirmed_rows_are_trimmed<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let rows = write(&world, (0..10).map(|n| online(&format!("a{n}")))).await;
    let early = world.clock.now();
    let late = early.after(Duration::from_secs(10));
    let outbox = &world.stores.outbox;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    outbox.confirm(&ids[..5], early).await.unwrap();
    outbox.confirm(&ids[5..8], late).await.unwrap();
    // Confirmed again later: the first time stands.
    outbox.confirm(&ids[..1], late).await.unwrap();
    assert_eq!(outbox.trim(early, 100).await.unwrap(), 0, "before, not at");
    let soon = early.after(Duration::from_millis(1));
    assert_eq!(outbox.trim(soon, 2).await.unwrap(), 2);
    assert_eq!(outbox.trim(soon, 100).await.unwrap(), 3);
    assert_eq!(outbox.trim(soon, 100).await.unwrap(), 0);
    assert_eq!(outbox.trim(Timestamp(i64::MAX), 100).await.unwrap(), 3);
    assert_eq!(world.outbox().await, rows[8..], "unconfirmed rows stay");
    outbox.confirm(&ids, late).await.unwrap();
    assert_eq!(world.outbox().await, []);
}

/// Writers, confirmers and readers at once: nothing is lost, nothing listed twice.
pub async fn events_confirmed_while_others_are_written<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let confirmed = race(20, |n| {
        let world = world.clone();
        async move {
            let mine = write(&world, [online(&format!("a{n}")), online(&format!("b{n}"))]).await;
            let listed = world.outbox().await;
            assert!(listed.is_sorted_by(|a, b| a.id < b.id));
            assert!(mine.iter().all(|row| listed.contains(row)), "committed, so listed");
            world.stores.outbox.confirm(&[mine[0].id], world.clock.now()).await.unwrap();
            mine[0].id
        }
    })
    .await;
    let left = world.outbox().await;
    assert_eq!(left.len(), 20);
    assert!(left.iter().all(|row| !confirmed.contains(&row.id)));
}

async fn write(world: &World, events: impl IntoIterator<Item = Event> + Send) -> Vec<Envelope> {
    let context = world.context();
    let rows: Vec<_> = events
        .into_iter()
        .map(|event| Envelope::new(event, &context, world.ids.as_ref()))
        .collect();
    // An event never comes alone: here an agent's row carries it.
    let agents = vec![crate::build::agent_row("carrier", 1)];
    let change = Change { agents, events: rows.clone(), ..Change::default() };
    world.apply(&change).await.unwrap();
    rows
}

fn online(id: &str) -> Event {
    Event::AgentChanged { admin_id: AdminId::new(id).unwrap(), online: true, live: false }
}

pub(crate) fn every_event() -> Vec<Event> {
    let session_id = SessionId::new(i64::MAX - 7).unwrap();
    let msg_id = MsgId::new(i64::MAX - 8).unwrap();
    let user_id = UserId::new("u.1_x-").unwrap();
    let admin_id = AdminId::new("a1").unwrap();
    let assigned = |how, from, actor| Event::SessionAssigned {
        session_id,
        user_id: user_id.clone(),
        admin_id: admin_id.clone(),
        from,
        how,
        actor,
        version: 2,
    };
    let supervisor = Actor::Supervisor(admin_id.clone());
    let requeued = |reason| Event::SessionRequeued {
        session_id,
        user_id: user_id.clone(),
        from: admin_id.clone(),
        reason,
        version: 3,
    };
    let ended = |admin_id, ended_by| Event::SessionEnded {
        session_id,
        user_id: user_id.clone(),
        admin_id,
        ended_by,
        version: 4,
    };
    let message = |admin_id| Event::MessageStored {
        session_id,
        msg_id,
        seq: Seq(9),
        user_id: user_id.clone(),
        admin_id,
        version: i64::MAX,
    };
    vec![
        Event::SessionOpened { session_id, user_id: user_id.clone(), version: 1 },
        assigned(How::Drain, None, Actor::System),
        assigned(How::Claim, None, Actor::Agent(admin_id.clone())),
        assigned(How::Transfer, Some(admin_id.clone()), supervisor.clone()),
        requeued(RequeueReason::AgentGone),
        requeued(RequeueReason::AgentOffline),
        ended(None, Actor::User(user_id.clone())),
        ended(Some(admin_id.clone()), supervisor),
        Event::SessionRated { session_id, user_id: user_id.clone(), rating: 5, version: 5 },
        message(None),
        message(Some(admin_id.clone())),
        Event::NoteAdded {
            session_id,
            note_id: NoteId::new(i64::MAX).unwrap(),
            admin_id: admin_id.clone(),
        },
        Event::AgentChanged { admin_id, online: false, live: true },
    ]
}
