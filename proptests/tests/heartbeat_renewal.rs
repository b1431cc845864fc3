//! PBT 2.9, heartbeat renewal: a sign of life resets the 60 s of its connection; a person is offline
//! when the last lease is gone (P1, CC-11). In virtual time; `cargo xtask show heartbeat` does it in
//! real time against the server.
//!
//! The specification's "31 s" contradicts its own 60 s: at 31 s a person is still there, at 61 gone.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kefu_core::limit::PRESENCE_TTL;
use kefu_core::{AdminId, ConnId, ManualClock, NodeName, Person, UserId};
use kefu_memory::MemoryCoordination;
use kefu_presence::{Lease, PresenceStore};
use kefu_proptests::broken::{LeaseFlaw, lease};
use kefu_proptests::{Violation, caught, ensure, generated};
use kefu_testkit::race;
use proptest::prelude::*;

/// Leases and the clock they expire by.
struct Leases {
    clock: Arc<ManualClock>,
    presence: Arc<dyn PresenceStore>,
}

impl Leases {
    fn memory() -> Self {
        let clock = Arc::new(ManualClock::default());
        let presence = MemoryCoordination::new(Arc::clone(&clock) as _).ports().presence;
        Self { clock, presence }
    }

    fn broken(flaw: LeaseFlaw) -> Self {
        let clock = Arc::new(ManualClock::default());
        let presence = lease(&clock, flaw);
        Self { clock, presence }
    }

    async fn acquire(&self, person: &Person, conn: u64, limit: usize) -> Option<usize> {
        let lease = connection(conn);
        self.presence.acquire(person, &lease, PRESENCE_TTL, limit).await.expect("memory")
    }

    async fn renew(&self, person: &Person, conn: u64) {
        self.presence.renew(person, &connection(conn), PRESENCE_TTL).await.expect("memory");
    }

    async fn release(&self, person: &Person, conn: u64) {
        self.presence.release(person, &connection(conn)).await.expect("memory");
    }

    async fn count(&self, person: &Person) -> usize {
        self.presence.count(person).await.expect("memory")
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

#[tokio::test]
async fn a_heartbeat_after_29_seconds_resets_the_60() -> Result<(), Violation> {
    check_one_heartbeat(&Leases::memory()).await
}

async fn check_one_heartbeat(leases: &Leases) -> Result<(), Violation> {
    for person in [person(0), person(1)] {
        leases.acquire(&person, 1, 10).await;
        leases.clock.advance(seconds(29));
        leases.renew(&person, 1).await;
        leases.clock.advance(seconds(31));
        leases.expect(&person, 1, "31 s after the heartbeat").await?;
        leases.clock.advance(seconds(28));
        leases.expect(&person, 1, "59 s after the heartbeat, 88 s after the connect").await?;
        leases.clock.advance(Duration::from_millis(999));
        leases.expect(&person, 1, "59.999 s after the heartbeat").await?;
        leases.clock.advance(Duration::from_millis(1));
        leases.expect(&person, 0, "60 s after the heartbeat").await?;
        leases.clock.advance(seconds(1));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_signs_of_life_keep_whom_they_are_from() -> Result<(), Violation> {
    let steps = prop::collection::vec(step(), 1..60);
    generated(file!(), 256, &steps, async |steps| check_steps(&Leases::memory(), &steps).await)
}

async fn check_steps(leases: &Leases, steps: &[Step]) -> Result<(), Violation> {
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
                leases.clock.advance(Duration::from_millis(ms));
                now += ms;
                model.retain(|_, deadline| *deadline > now);
            }
            Step::WallClock { ms } => leases.clock.step_wall(ms),
        }
        for n in 0..PEOPLE {
            let count = model.keys().filter(|(who, _)| *who == n).count();
            leases.expect(&person(n), count, &format!("after {step:?}")).await?;
        }
    }
    Ok(())
}

// (c) Concurrent.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_at_once_are_each_counted() -> Result<(), Violation> {
    check_heartbeats_at_once(Leases::memory()).await
}

/// Ten people with ten connections each. At 29 s all speak at once, except every fifth, which closes,
/// and every fifth, which keeps silent.
async fn check_heartbeats_at_once(leases: Leases) -> Result<(), Violation> {
    let leases = Arc::new(leases);
    for n in 0..100 {
        leases.acquire(&person(n / 10), n as u64, 10).await;
    }
    leases.clock.advance(seconds(29));
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
    for (pass, left) in [(0, 8), (30, 8), (1, 6), (28, 6), (2, 0)] {
        leases.clock.advance(seconds(pass));
        for n in 0..10 {
            leases.expect(&person(n), left, &format!("{pass} s later")).await?;
        }
    }
    Ok(())
}

const CONNECTS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connects_at_once_are_each_counted() -> Result<(), Violation> {
    check_connects_at_once(Leases::memory()).await
}

/// Fifty connects of one person, of which ten may be (L2).
async fn check_connects_at_once(leases: Leases) -> Result<(), Violation> {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_that_renews_nothing_is_caught() -> Result<(), Violation> {
    let broken = || Leases::broken(LeaseFlaw::NotRenewed);
    caught(check_one_heartbeat(&broken()).await, "31 s after the heartbeat")?;
    let steps = [
        Step::Connect { person: 0, conn: 0 },
        Step::Pass { ms: 29_000 },
        Step::Heartbeat { person: 0, conn: 0 },
        Step::Pass { ms: 31_000 },
    ];
    caught(check_steps(&broken(), &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken()).await, "leases:")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shorter_life_is_caught() -> Result<(), Violation> {
    let broken = || Leases::broken(LeaseFlaw::Halved);
    caught(check_one_heartbeat(&broken()).await, "31 s after the heartbeat")?;
    let steps = [Step::Connect { person: 0, conn: 0 }, Step::Pass { ms: 59_000 }];
    caught(check_steps(&broken(), &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken()).await, "leases:")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_life_is_caught() -> Result<(), Violation> {
    let broken = || Leases::broken(LeaseFlaw::Endless);
    caught(check_one_heartbeat(&broken()).await, "60 s after the heartbeat")?;
    let steps = [Step::Connect { person: 0, conn: 0 }, Step::Pass { ms: 60_000 }];
    caught(check_steps(&broken(), &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken()).await, "leases:")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_by_the_wall_clock_is_caught() -> Result<(), Violation> {
    let steps = [Step::Connect { person: 0, conn: 0 }, Step::WallClock { ms: 300_000 }];
    caught(check_steps(&Leases::broken(LeaseFlaw::ByWallClock), &steps).await, "leases:")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_does_not_come_back_is_caught() -> Result<(), Violation> {
    let steps = [Step::Heartbeat { person: 0, conn: 0 }];
    caught(check_steps(&Leases::broken(LeaseFlaw::NotRecreated), &steps).await, "leases:")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_close_that_takes_all_leases_is_caught() -> Result<(), Violation> {
    let broken = || Leases::broken(LeaseFlaw::AllReleased);
    let steps = [
        Step::Connect { person: 0, conn: 0 },
        Step::Connect { person: 0, conn: 1 },
        Step::Close { person: 0, conn: 1 },
    ];
    caught(check_steps(&broken(), &steps).await, "leases:")?;
    caught(check_heartbeats_at_once(broken()).await, "leases:")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_apart_from_the_connect_is_caught() -> Result<(), Violation> {
    caught(check_connects_at_once(Leases::broken(LeaseFlaw::CountedBefore)).await, "limit:")
}
