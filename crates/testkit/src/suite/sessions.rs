//! `SessionStore`: opening, changing and reading sessions.

use std::collections::BTreeSet;
use std::sync::Mutex;

use kefu_core::{Actor, Balance, IdSource, Seq, SessionId, StoreFault, UserId, UserInfo};
use kefu_events::Event;
use kefu_session::{
    OpenVerdict, Opened, Rating, RatingRequest, Refusal, Session, SessionVerdict, Status, Updated,
    decide_open, decide_rating,
};

use crate::build::{self, from_user, user_caller};
use crate::check::Ledger;
use crate::{Harness, World, race};

/// S1: the first call creates, with its event; the second gives the same session and writes nothing.
pub async fn opening_again_gives_the_open_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let user = build::user("u1", 5);
    let first = world.open_as(&user).await;
    assert!(first.created);
    assert_eq!(first.events.len(), 1);
    let second = world.open_as(&user).await;
    assert!(!second.created);
    assert_eq!(second.session, first.session);
    assert_eq!(second.events, []);
    assert_eq!(world.session(first.session.id).await, first.session);
    let open = world.stores.sessions.find_open(&user.user_id).await.unwrap();
    assert_eq!(open, Some(first.session));
    assert_eq!(world.outbox().await, first.events, "one row, as it was decided");
}

/// S1: a hundred at once of one user: one session, created once, announced once.
pub async fn a_hundred_openings_at_once_make_one_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let opened = race(100, |_| {
        let world = world.clone();
        async move { world.open_as(&build::user("u1", 5)).await }
    })
    .await;
    assert_eq!(opened.iter().filter(|answer| answer.created).count(), 1);
    assert!(opened.windows(2).all(|pair| pair[0].session == pair[1].session));
    assert_eq!(world.outbox().await.len(), 1);
    assert_eq!(world.stores.line.front(10).await.unwrap().total, 1);
}

/// Users do not get into each other's way.
pub async fn openings_of_many_users_at_once_are_independent<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let opened = race(50, |n| {
        let world = world.clone();
        async move { world.open_as(&build::user(&format!("u{}", n % 25), 0)).await }
    })
    .await;
    let ids: BTreeSet<_> = opened.iter().map(|answer| answer.session.id).collect();
    assert_eq!(ids.len(), 25);
    assert_eq!(opened.iter().filter(|answer| answer.created).count(), 25);
    assert_eq!(world.outbox().await.len(), 25);
}

/// A decision may run more than once: what an earlier run or a loser of a race thought up leaves nothing.
pub async fn an_opening_decided_more_than_once_writes_the_last_verdict_only<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let thought_up = std::sync::Arc::new(Mutex::new(BTreeSet::new()));
    let opened = race(30, |_| {
        let (world, thought_up) = (world.clone(), std::sync::Arc::clone(&thought_up));
        async move {
            let user = build::user("u1", 0);
            let context = world.context();
            let decide = |open: Option<&Session>, ids: &dyn IdSource| {
                ids.next_after(0);
                let verdict = decide_open(open, &user, "web", 0, &context, ids);
                if let OpenVerdict::Insert(session, _) = &verdict {
                    thought_up.lock().unwrap().insert(session.id);
                }
                verdict
            };
            let ids = world.ids.as_ref();
            world.stores.sessions.open(&user.user_id, &decide, ids).await.unwrap()
        }
    })
    .await;
    let kept = opened[0].session.id;
    assert!(opened.iter().all(|answer| answer.session.id == kept));
    let all: Vec<_> = thought_up.lock().unwrap().iter().copied().collect();
    assert!(all.contains(&kept));
    for id in all.into_iter().filter(|id| *id != kept) {
        assert_eq!(world.stores.sessions.find(id).await.unwrap(), None);
    }
    assert_eq!(world.outbox().await.len(), 1);
}

/// A waiting session follows the newest token; that is no new session and no event.
pub async fn opening_refreshes_a_waiting_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let first = world.open("u1", 100).await;
    let richer = UserInfo { name: "New name".into(), vip: Some(true), ..build::user("u1", 900) };
    let answer = world.open_as(&richer).await;
    assert!(!answer.created);
    let expected = Session {
        user: kefu_session::UserProfile {
            name: "New name".into(),
            vip: Some(true),
            ..first.user.clone()
        },
        balance: Some(Balance(900)),
        priority: 900,
        version: first.version + 1,
        ..first.clone()
    };
    assert_eq!(answer.session, expected);
    assert_eq!(world.session(first.id).await, expected);
    assert_eq!(world.outbox().await.len(), 1);
}

/// A1: pages over what is open, each session once, by id; ended ones are left out.
pub async fn open_sessions_come_in_pages<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut open = Vec::new();
    for n in 0..7 {
        open.push(world.open(&format!("u{n}"), n).await.id);
    }
    let admin = world.agent("a1", 1).await;
    world.claim(&admin, open[2]).await.unwrap();
    world.end_by_user(&world.session(open[4]).await).await;
    open.remove(4);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = world.stores.sessions.list_open_after(after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(last.id);
        seen.extend(page.iter().map(|session| session.id));
    }
    assert_eq!(seen, open);
}

/// An active session keeps the balance it began to wait with.
pub async fn opening_keeps_an_active_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let waiting = world.open("u1", 100).await;
    let admin = world.agent("a1", 1).await;
    let active = world.claim(&admin, waiting.id).await.unwrap();
    let answer = world.open_as(&build::user("u1", 900)).await;
    assert_eq!((answer.created, answer.session), (false, active.clone()));
    assert_eq!(world.session(waiting.id).await, active);
}

/// S2: ended is terminal; the next opening makes another session, with a larger id.
pub async fn opening_after_the_end_makes_a_new_session<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let first = world.open("u1", 0).await;
    world.end_by_user(&first).await;
    let sessions = &world.stores.sessions;
    assert_eq!(sessions.find_open(&first.user.user_id).await.unwrap(), None);
    let second = world.open_as(&build::user("u1", 0)).await;
    assert!(second.created);
    assert!(second.session.id > first.id);
    assert_eq!(world.session(first.id).await.status, Status::Ended);
}

/// S1, S2: openings and ends of one user in any order never leave two open sessions.
pub async fn openings_race_with_ends<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let seen = race(40, |n| {
        let world = world.clone();
        async move {
            let session = world.open("u1", 0).await;
            if n % 2 == 0 {
                world.end_by_user(&session).await;
            }
            session.id
        }
    })
    .await;
    let stores = &world.stores;
    Ledger::collect(stores, seen, []).await.unwrap().assert_sound();
}

/// The row, its version and its events are written together.
pub async fn an_update_writes_the_row_and_its_events<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let updated = rate(&world, session.id, 4, "好 😀\n\"';--").await.unwrap();
    let Updated::Written(written, events) = updated else { panic!("{updated:?}") };
    let rating = Rating { score: 4, comment: "好 😀\n\"';--".into(), time: world.context().now };
    let expected =
        Session { rating: Some(rating), version: session.version + 1, ..session.clone() };
    assert_eq!(written, expected);
    assert_eq!(world.session(session.id).await, expected);
    let outbox = world.outbox().await;
    assert_eq!(outbox.last(), events.first());
    assert!(matches!(outbox[1].event, Event::SessionRated { rating: 4, version: 2, .. }));
    rate(&world, session.id, 1, "").await.unwrap();
    let replaced = world.session(session.id).await.rating.unwrap();
    assert_eq!((replaced.score, replaced.comment.as_str()), (1, ""), "S3: later replaces earlier");
}

/// `Keep` and `Refuse` write nothing; an unknown id is `Missing` and decides nothing.
pub async fn an_update_without_a_write_changes_nothing<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let before = world.outbox().await;
    let sessions = &world.stores.sessions;
    let ids = world.ids.as_ref();
    let kept = sessions.update(session.id, &|_, _| SessionVerdict::Keep, ids).await.unwrap();
    assert!(matches!(kept, Updated::Kept(row) if row == session));
    let refuse = |_: &Session, _: &dyn IdSource| SessionVerdict::Refuse(Refusal::Forbidden);
    let refused = sessions.update(session.id, &refuse, ids).await.unwrap();
    assert!(matches!(refused, Updated::Refused(Refusal::Forbidden)));
    let unknown = SessionId::new(42).unwrap();
    let missing = sessions.update(unknown, &|_, _| panic!("nothing to decide"), ids).await;
    assert!(matches!(missing, Ok(Updated::Missing)));
    assert_eq!(world.session(session.id).await, session);
    assert_eq!(world.outbox().await, before);
}

/// The row is locked while the decision runs: no update is lost.
pub async fn concurrent_updates_follow_one_another<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    race(50, |n| {
        let world = world.clone();
        async move { rate(&world, session.id, 3, &n.to_string()).await.unwrap() }
    })
    .await;
    let after = world.session(session.id).await;
    assert_eq!(after.version, session.version + 50);
    let versions: BTreeSet<_> = world.outbox().await.iter().filter_map(rated_version).collect();
    assert_eq!(versions, (2..=51).collect());
}

fn rated_version(envelope: &kefu_events::Envelope) -> Option<i64> {
    match envelope.event {
        Event::SessionRated { version, .. } => Some(version),
        _ => None,
    }
}

/// An update and an append of one session exclude each other: neither overwrites the other's part.
pub async fn updates_race_with_appends<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let sender = from_user(&session.user.user_id);
    race(40, |n| {
        let (world, sender) = (world.clone(), sender.clone());
        async move {
            if n % 2 == 0 {
                rate(&world, session.id, 5, "x").await.unwrap();
            } else {
                world.say(session.id, &sender, &n.to_string(), "hello").await;
            }
        }
    })
    .await;
    let after = world.session(session.id).await;
    assert_eq!(after.last_seq.0, 20);
    assert_eq!(after.version, session.version + 40);
    assert_eq!(after.rating.map(|rating| rating.score), Some(5));
    Ledger::collect(&world.stores, [session.id], []).await.unwrap().assert_sound();
}

/// Every field comes back as it was written.
pub async fn every_field_survives<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let people = [
        UserInfo {
            user_id: UserId::new("A.b_C-9").unwrap(),
            name: "名前 😀 \"'`;%_\\".into(),
            avatar: Some("https://a.test/x.png?y=1&z=%20".into()),
            balance: Some(Balance(-Balance::MAX)),
            vip: Some(false),
        },
        UserInfo { balance: None, vip: None, ..build::user("u2", 0) },
        UserInfo { balance: Some(Balance(Balance::MAX)), vip: Some(true), ..build::user("u3", 0) },
    ];
    let mut expected = Vec::new();
    for person in &people {
        let opened = world.open_as(person).await.session;
        assert_eq!(opened.user_info(), *person);
        expected.push(opened);
    }
    let admin = world.agent("a1", 5).await;
    expected[0] = world.claim(&admin, expected[0].id).await.unwrap();
    let by = build::supervisor_caller("boss");
    expected[0] = world.end(&by, expected[0].id).await.unwrap();
    assert_eq!(expected[0].ended_by, Some(Actor::Supervisor(build::admin("boss"))));
    let told = world.context().now;
    let notice = |session: &Session, _: &dyn IdSource| {
        let row =
            Session { noticed_at: Some(told), version: session.version + 1, ..session.clone() };
        SessionVerdict::Write(row, Vec::new())
    };
    let ids = world.ids.as_ref();
    world.stores.sessions.update(expected[1].id, &notice, ids).await.unwrap();
    expected[1].noticed_at = Some(told);
    expected[1].version += 1;
    let world = world.restarted(&mut harness).await;
    for session in expected {
        assert_eq!(world.session(session.id).await, session);
    }
}

/// Reads of what is not there give nothing.
pub async fn unknown_ids_are_absent<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let sessions = &world.stores.sessions;
    let nobody = UserId::new("nobody").unwrap();
    assert_eq!(sessions.find(SessionId::new(i64::MAX).unwrap()).await.unwrap(), None);
    assert_eq!(sessions.find_open(&nobody).await.unwrap(), None);
    assert_eq!(sessions.find_latest_ended(&nobody).await.unwrap(), None);
    assert_eq!(sessions.list_owned(&build::admin("nobody")).await.unwrap(), []);
}

/// Of several ended sessions the latest; an open one does not count.
pub async fn the_latest_ended_session_is_found<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let mut last = None;
    for _ in 0..3 {
        let session = world.open("u1", 0).await;
        world.clock.advance(std::time::Duration::from_secs(5));
        last = Some(world.end_by_user(&session).await);
    }
    world.open("u1", 0).await;
    let user = UserId::new("u1").unwrap();
    assert_eq!(world.stores.sessions.find_latest_ended(&user).await.unwrap(), last);
}

/// An agent's active sessions by id: not ended ones, not a colleague's.
pub async fn owned_sessions_are_listed_by_id<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let (a1, a2) = (world.agent("a1", 9).await, world.agent("a2", 9).await);
    let mut opened = Vec::new();
    for n in 0..6 {
        opened.push(world.open(&format!("u{n}"), 0).await);
    }
    // Claimed in another order than they were opened in.
    for n in [4, 0, 2, 5] {
        world.claim(&a1, opened[n].id).await.unwrap();
    }
    world.claim(&a2, opened[1].id).await.unwrap();
    world.end_by_user(&opened[2]).await;
    let owned = world.stores.sessions.list_owned(&a1).await.unwrap();
    let ids: Vec<_> = owned.iter().map(|session| session.id).collect();
    assert_eq!(ids, [opened[0].id, opened[4].id, opened[5].id]);
    assert_eq!(owned[0], world.session(opened[0].id).await);
}

/// A row that breaks an invariant or takes a given id is refused as `Internal`, its event with it.
pub async fn an_impossible_session_is_not_stored<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let taken = world.open("u1", 0).await;
    let owned = |session| Session { admin_id: Some(build::admin("a1")), ..session };
    let reused = |session| Session { id: taken.id, ..session };
    let user = build::user("u2", 0);
    for answer in
        [open_spoilt(&world, &user, owned).await, open_spoilt(&world, &user, reused).await]
    {
        assert!(matches!(answer, Err(StoreFault::Internal { .. })), "{answer:?}");
        assert_eq!(world.stores.sessions.find_open(&user.user_id).await.unwrap(), None);
        assert_eq!(world.session(taken.id).await, taken);
        assert_eq!(world.outbox().await.len(), 1);
    }
    assert!(world.open_as(&user).await.created, "the user is not blocked by it");
}

async fn open_spoilt(
    world: &World,
    user: &UserInfo,
    spoil: impl Fn(Session) -> Session + Send + Sync,
) -> Result<Opened, StoreFault> {
    let context = world.context();
    let decide = |open: Option<&Session>, ids: &dyn IdSource| match decide_open(
        open, user, "web", 0, &context, ids,
    ) {
        OpenVerdict::Insert(session, events) => OpenVerdict::Insert(spoil(session), events),
        other => other,
    };
    world.stores.sessions.open(&user.user_id, &decide, world.ids.as_ref()).await
}

/// A restart loses nothing and opens nothing twice.
pub async fn a_restart_keeps_open_sessions<H: Harness>() {
    let (mut harness, world) = World::start::<H>().await;
    let session = world.open("u1", 7).await;
    let world = world.restarted(&mut harness).await;
    let again = world.open_as(&build::user("u1", 7)).await;
    assert_eq!((again.created, again.session), (false, session));
    assert_eq!(world.outbox().await.len(), 1);
}

async fn rate(
    world: &World,
    session: SessionId,
    score: u8,
    comment: &str,
) -> Result<Updated, StoreFault> {
    let request = RatingRequest { score, comment: comment.to_owned() };
    let context = world.context();
    let decide = |session: &Session, ids: &dyn IdSource| {
        let caller = user_caller(&session.user.user_id);
        decide_rating(session, &caller, &request, &context, ids)
    };
    world.stores.sessions.update(session, &decide, world.ids.as_ref()).await
}

/// M5: the last position of each session asked for; unknown ones are absent, empty ones at 0.
pub async fn tips_of_many_sessions_are_read_at_once<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let spoken = world.open("u1", 0).await;
    let silent = world.open("u2", 0).await;
    world.say_many(spoken.id, &from_user(&spoken.user.user_id), 3).await;
    let unknown = SessionId::new(5).unwrap();
    let tips = world.stores.sessions.list_tips(&[silent.id, unknown, spoken.id]).await.unwrap();
    assert_eq!(tips, [(spoken.id, Seq(3)), (silent.id, Seq(0))].into());
    assert!(world.stores.sessions.list_tips(&[]).await.unwrap().is_empty());
    let many: Vec<_> = (1..3_000).map(|id| SessionId::new(id).unwrap()).collect();
    assert!(world.stores.sessions.list_tips(&many).await.unwrap().is_empty());
}
