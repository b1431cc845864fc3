//! Decisions about one session take turns, over all ports that write it.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kefu_assignment::{Scope, Snapshot, Verdict};
use kefu_core::IdSource;
use kefu_messaging::{AppendRequest, AppendSnapshot, decide_append};
use kefu_session::{Session, SessionVerdict};

use crate::build::{from_user, text};
use crate::{Harness, World, race};

/// Which decisions run at this moment, and what those were shown that are written.
#[derive(Default)]
struct Turns {
    inside: AtomicUsize,
    shown: Mutex<Vec<i64>>,
}

impl Turns {
    /// Stays inside long enough for another thread to come in, if any can.
    fn visit(&self) {
        let others = self.inside.fetch_add(1, Ordering::SeqCst);
        for _ in 0..20 {
            std::thread::yield_now();
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two decisions about one session at once");
    }

    /// A decision that was shown this version is written.
    fn written(&self, version: &AtomicI64) {
        self.shown.lock().unwrap().push(version.load(Ordering::SeqCst));
    }
}

/// Whatever the port: a decision that is written was shown the session as it was just before. Those of
/// sessions and of assignments are also made one at a time.
pub async fn decisions_about_one_session_take_turns<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let turns = Arc::new(Turns::default());
    race(90, |n| {
        let (world, session, turns) = (world.clone(), session.clone(), Arc::clone(&turns));
        async move {
            match n % 3 {
                0 => append(&world, &session, n, &turns).await,
                1 => update(&world, &session, &turns).await,
                _ => transact(&world, &session, &turns).await,
            }
        }
    })
    .await;
    let mut shown = turns.shown.lock().unwrap().clone();
    shown.sort_unstable();
    let expected: Vec<_> = (session.version..session.version + 60).collect();
    assert_eq!(shown, expected, "each is shown what the one before it wrote");
    assert_eq!(world.session(session.id).await.version, session.version + 60);
    assert_eq!(world.history(session.id).await.len(), 30);
}

async fn append(world: &World, session: &Session, n: usize, turns: &Turns) {
    let context = world.context();
    let shown = AtomicI64::default();
    let decide = |snapshot: &AppendSnapshot, requests: &[AppendRequest], ids: &dyn IdSource| {
        // May run again: what counts is the last time.
        shown.store(snapshot.sessions[&session.id].version, Ordering::SeqCst);
        std::thread::yield_now();
        decide_append(snapshot, requests, &context, ids)
    };
    let batch = [text(session.id, &from_user(&session.user.user_id), &n.to_string(), "x")];
    world.stores.messages.append(&batch, &decide, world.ids.as_ref()).await.unwrap();
    turns.written(&shown);
}

async fn update(world: &World, session: &Session, turns: &Turns) {
    let shown = AtomicI64::default();
    let decide = |session: &Session, _: &dyn IdSource| {
        turns.visit();
        shown.store(session.version, Ordering::SeqCst);
        let next = Session { version: session.version + 1, ..session.clone() };
        SessionVerdict::Write(next, Vec::new())
    };
    world.stores.sessions.update(session.id, &decide, world.ids.as_ref()).await.unwrap();
    turns.written(&shown);
}

async fn transact(world: &World, session: &Session, turns: &Turns) {
    let decide = |_: &Snapshot, _: &dyn IdSource| {
        turns.visit();
        Verdict::Stale
    };
    world.transact(&Scope::new([], [session.id]), &decide).await.unwrap();
}
