//! PBT 2.9, heartbeat renewal: a sign of life resets the 60 s of its connection; a person is offline
//! when the last lease is gone (P1, CC-11). In virtual time: memory's clock stands still until it is
//! moved, Redis's own goes on, so that there one looks a little beside the end of a life. `cargo xtask
//! show heartbeat` does it in real time against the server.
//!
//! The specification's "31 s" contradicts its own 60 s: at 31 s a person is still there, at 61 gone.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kefu_core::limit::PRESENCE_TTL;
use kefu_core::{AdminId, ConnId, NodeName, Person, UserId};
use kefu_presence::{Lease, PresenceStore};
use kefu_proptests::backend::{LeaseBackend, MemoryLeases};
use kefu_proptests::broken::{LeaseFlaw, lease, lease_by_wall_clock};
use kefu_proptests::{Violation, caught, ensure, generated, on_every_lease_backend};
use kefu_testkit::{CoordinationHarness, race};
use proptest::prelude::*;

on_every_lease_backend!(
    a_heartbeat_after_29_seconds_resets_the_60,
    any_signs_of_life_keep_whom_they_are_from,
    heartbeats_at_once_are_each_counted,
    connects_at_once_are_each_counted,
    a_heartbeat_that_renews_nothing_is_caught,
    a_shorter_life_is_caught,
    an_endless_life_is_caught,
    a_lease_that_does_not_come_back_is_caught,
    one_close_that_takes_all_leases_is_caught,
    a_count_apart_from_the_connect_is_caught,
);

/// Leases and the clock they expire by.
struct Leases<B> {
    backend: B,
    presence: Arc<dyn PresenceStore>,
}

impl<B: LeaseBackend> Leases<B> {
    async fn start() -> Self {
        let backend = B::start().await;
        let presence = backend.coordination().presence;
        Self { backend, presence }
    }

    async fn broken(flaw: LeaseFlaw) -> Self {
        let Self { backend, presence } = Self::start().await;
        Self { backend, presence: lease(presence, flaw) }
    }

    async fn pass(&self, time: Duration) {
        self.backend.advance(time).await;
    }

    async fn acquire(&self, person: &Person, conn: u64, limit: usize) -> Option<usize> {
        let lease = connection(conn);
        self.presence.acquire(person, &lease, PRESENCE_TTL, limit).await.expect("answered")
    }

    async fn renew(&self, person: &Person, conn: u64) {
        self.presence.renew(person, &connection(conn), PRESENCE_TTL).await.expect("answered");
    }

    async fn release(&self, person: &Person, conn: u64) {
        self.presence.release(person, &connection(conn)).await.expect("answered");
    }

    async fn count(&self, person: &Person) -> usize {
        self.presence.count(person).await.expect("answered")
    }

    async fn expect(&self, person: &Person, count: usize, when: &str) -> Result<(), Violation> {
        let found = self.count(person).await;
        ensure(found == count, || format!("leases: {person} has {found}, not {count}, {when}"))
    }
}

fn connection(conn: u64) -> Lease {
    Lease { node: NodeName::new("n1").expect("valid"), conn: ConnId(conn) }
}

/// Half are users, half are agents.
fn person(n: usize) -> Person {
    if n.is_multiple_of(2) {
        Person::User(UserId::new(format!("u{n}")).expect("valid"))
    } else {
        Person::Agent(AdminId::new(format!("a{n}")).expect("valid"))
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// (a) The specification's own falsification.

async fn a_heartbeat_after_29_seconds_resets_the_60<B: LeaseBackend>() -> Result<(), Violation> {
    check_one_heartbeat(&Leases::<B>::start().await).await
}

async fn check_one_heartbeat<B: LeaseBackend>(leases: &Leases<B>) -> Result<(), Violation> {
    for person in [person(0), person(1)] {
        leases.acquire(&person, 1, 10).await;
        leases.pass(seconds(29)).await;
        leases.renew(&person, 1).await;
        leases.pass(seconds(31)).await;
        leases.expect(&person, 1, "31 s after the heartbeat").await?;
        leases.pass(seconds(28)).await;
        leases.expect(&person, 1, "59 s after the heartbeat, 88 s after the connect").await?;
        if B::MARGIN.is_zero() {
            leases.pass(Duration::from_millis(999)).await;
            leases.expect(&person, 1, "59.999 s after the heartbeat").await?;
            leases.pass(Duration::from_millis(1)).await;
            leases.expect(&person, 0, "60 s after the heartbeat").await?;
            leases.pass(seconds(1)).await;
        } else {
            leases.pass(seconds(2)).await;
        }
        leases.expect(&person, 0, "61 s after the heartbeat").await?;
    }
    Ok(())
}

// (b) Generated: people, connections, silence, wall clock steps, a store that lost everything.

#[derive(Debug, Clone, Copy)]
enum Step {
    Connect { person: usize, conn: u64 },
    Heartbeat { person: usize, conn: u64 },
    Close { person: usize, conn: u64 },
    Pass { ms: u64 },
    WallClock { ms: i64 },
}

const PEOPLE: usize = 3;
const LIMIT: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let of = || (0..PEOPLE, 0..5_u64);
    let pass = prop_oneof![
        prop::sample::select(vec![1, 1_000, 29_000, 31_000, 59_000, 59_999, 60_000, 61_000]),
        0..70_000_u64,
    ];
    let five_minutes = 300_000_i64;
    prop_oneof![
        3 => of().prop_map(|(person, conn)| Step::Connect { person, conn }),
        3 => of().prop_map(|(person, conn)| Step::Heartbeat { person, conn }),
        1 => of().prop_map(|(person, conn)| Step::Close { person, conn }),
        4 => pass.prop_map(|ms| Step::Pass { ms }),
        1 => (-five_minutes..=five_minutes).prop_map(|ms| Step::WallClock { ms }),
    ]
}

async fn any_signs_of_life_keep_whom_they_are_from<B: LeaseBackend>() -> Result<(), Violation> {
    let steps = prop::collection::vec(step(), 1..60);
    generated(file!(), B::CASES, &steps, async |steps| {
        check_steps(&Leases::<B>::start().await, &steps).await
    })
}

/// Where time goes on by itself, it passes in pieces of 25 s: no sum of them is near to 60.
fn piece<B: LeaseBackend>(ms: u64) -> u64 {
    const PIECE: u64 = 25_000;
    if B::MARGIN.is_zero() { ms } else { (ms + PIECE / 2) / PIECE * PIECE }
}

async fn check_steps<B: LeaseBackend>(leases: &Leases<B>, steps: &[Step]) -> Result<(), Violation> {
    let mut now = 0;
    // When each lease runs out.
    let mut model: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    let ttl = 60_000;
    for step in steps {
        match *step {
            Step::Connect { person: n, conn } => {
                let others = model.keys().filter(|(who, other)| *who == n && *other != conn);
                let others = others.count();
                let expected = (others < LIMIT).then_some(others + 1);
                let taken = leases.acquire(&person(n), conn, LIMIT).await;
                ensure(taken == expected, || format!("leases: {step:?} gave {taken:?}"))?;
                if expected.is_some() {
                    model.insert((n, conn), now + ttl);
                }
            }
            Step::Heartbeat { person: n, conn } => {
                leases.renew(&person(n), conn).await;
                model.insert((n, conn), now + ttl);
            }
            Step::Close { person: n, conn } => {
                leases.release(&person(n), conn).await;
                model.remove(&(n, conn));
            }
            Step::Pass { ms } => {
                let ms = piece::<B>(ms);
                leases.pass(Duration::from_millis(ms)).await;
                now += ms;
                model.retain(|_, deadline| *deadline > now);
            }
            Step::WallClock { ms } => leases.backend.step_wall(ms),
        }
        for n in 0..PEOPLE {
            let count = model.keys().filter(|(who, _)| *who == n).count();
            leases.expect(&person(n), count, &format!("after {step:?}")).await?;
        }
    }
    Ok(())
}

// (c) Concurrent.

async fn heartbeats_at_once_are_each_counted<B: LeaseBackend>() -> Result<(), Violation> {
    check_heartbeats_at_once(Leases::<B>::start().await).await
}

/// Ten people with ten connections each. At 29 s all speak at once, except every fifth, which closes,
/// and every fifth, which keeps silent.
async fn check_heartbeats_at_once<B: LeaseBackend>(leases: Leases<B>) -> Result<(), Violation> {
    let leases = Arc::new(leases);
    for n in 0..100 {
        leases.acquire(&person(n / 10), n as u64, 10).await;
    }
    leases.pass(seconds(29)).await;
    race(100, |n| {
        let leases = Arc::clone(&leases);
        async move {
            match n % 5 {
                0 => leases.release(&person(n / 10), n as u64).await,
                1 => {}
                _ => leases.renew(&person(n / 10), n as u64).await,
            }
        }
    })
    .await;
    // How old the silent ones are; those who spoke are 29 s younger.
    let (end, beside) = (seconds(60), B::MARGIN.max(seconds(1)));
    let mut age = seconds(29);
    for (then, left) in [
        (age, 8),
        (end - beside, 8),
        (end + B::MARGIN, 6),
        (end + seconds(29) - beside, 6),
        (end + seconds(29) + B::MARGIN, 0),
    ] {
        leases.pass(then - age).await;
        age = then;
        for n in 0..10 {
            leases.expect(&person(n), left, &format!("at {} s", age.as_secs())).await?;
        }
    }
    Ok(())
}

const CONNECTS: usize = 50;

async fn connects_at_once_are_each_counted<B: LeaseBackend>() -> Result<(), Violation> {
    check_connects_at_once(Leases::<B>::start().await).await
}

/// Fifty connects of one person, of which ten may be (L2).
async fn check_connects_at_once<B: LeaseBackend>(leases: Leases<B>) -> Result<(), Violation> {
    let leases = Arc::new(leases);
    let answers = race(CONNECTS, |n| {
        let leases = Arc::clone(&leases);
        async move { leases.acquire(&person(0), n as u64, 10).await }
    })
    .await;
    let counts: Vec<_> = answers.into_iter().flatten().collect();
    let each: BTreeSet<_> = counts.iter().copied().collect();
    let holds = counts.len() == 10 && each == (1..=10).collect();
    ensure(holds, || format!("limit: the connects were counted {counts:?}"))?;
    leases.expect(&person(0), 10, "after fifty connects").await
}

// Shown able to fail.

async fn a_heartbeat_that_renews_nothing_is_caught<B: LeaseBackend>() -> Result<(), Violation> {
    let broken = || Leases::<B>::broken(LeaseFlaw::NotRenewed);
    caught(check_one_heartbeat(&broken().await).await, "has 0, not 1")?;
    let steps = [
        Step::Connect { person: 0, conn: 0 },
        Step::Pass { ms: 29_000 },
        Step::Heartbeat { person: 0, conn: 0 },
        Step::Pass { ms: 50_000 },
    ];
    caught(check_steps(&broken().await, &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken().await).await, "leases:")
}

async fn a_shorter_life_is_caught<B: LeaseBackend>() -> Result<(), Violation> {
    let broken = || Leases::<B>::broken(LeaseFlaw::Halved);
    caught(check_one_heartbeat(&broken().await).await, "has 0, not 1")?;
    let steps = [Step::Connect { person: 0, conn: 0 }, Step::Pass { ms: 59_000 }];
    caught(check_steps(&broken().await, &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken().await).await, "leases:")
}

async fn an_endless_life_is_caught<B: LeaseBackend>() -> Result<(), Violation> {
    let broken = || Leases::<B>::broken(LeaseFlaw::Endless);
    caught(check_one_heartbeat(&broken().await).await, "has 1, not 0")?;
    let steps = [Step::Connect { person: 0, conn: 0 }, Step::Pass { ms: 63_000 }];
    caught(check_steps(&broken().await, &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken().await).await, "leases:")
}

#[tokio::test]
async fn a_life_by_the_wall_clock_is_caught() -> Result<(), Violation> {
    let steps = [Step::Connect { person: 0, conn: 0 }, Step::WallClock { ms: 300_000 }];
    let backend = MemoryLeases::start().await;
    let presence = lease_by_wall_clock(backend.clock());
    caught(check_steps(&Leases { backend, presence }, &steps).await, "leases:")
}

async fn a_lease_that_does_not_come_back_is_caught<B: LeaseBackend>() -> Result<(), Violation> {
    let steps = [Step::Heartbeat { person: 0, conn: 0 }];
    let broken = Leases::<B>::broken(LeaseFlaw::NotRecreated).await;
    caught(check_steps(&broken, &steps).await, "leases:")
}

async fn one_close_that_takes_all_leases_is_caught<B: LeaseBackend>() -> Result<(), Violation> {
    let broken = || Leases::<B>::broken(LeaseFlaw::AllReleased);
    let steps = [
        Step::Connect { person: 0, conn: 0 },
        Step::Connect { person: 0, conn: 1 },
        Step::Close { person: 0, conn: 1 },
    ];
    caught(check_steps(&broken().await, &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken().await).await, "leases:")
}

async fn a_count_apart_from_the_connect_is_caught<B: LeaseBackend>() -> Result<(), Violation> {
    let broken = Leases::<B>::broken(LeaseFlaw::CountedBefore).await;
    caught(check_connects_at_once(broken).await, "limit:")
}
