//! Mutual exclusion per session, over all ports that lock it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kefu_assignment::{Scope, Snapshot, Verdict};
use kefu_core::IdSource;
use kefu_messaging::{AppendRequest, AppendSnapshot, decide_append};
use kefu_session::{Session, SessionVerdict};

use crate::build::{from_user, text};
use crate::{Harness, World, race};

/// Counts the decisions that run at this moment.
#[derive(Default)]
struct Inside(AtomicUsize);

impl Inside {
    /// Stays inside long enough for another thread to come in, if any can.
    fn visit(&self) {
        let others = self.0.fetch_add(1, Ordering::SeqCst);
        for _ in 0..20 {
            std::thread::yield_now();
        }
        self.0.fetch_sub(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two decisions about one session at once");
    }
}

/// Whatever the port, one decision about a session at a time.
pub async fn decisions_about_one_session_exclude_each_other<H: Harness>() {
    let (_harness, world) = World::start::<H>().await;
    let session = world.open("u1", 0).await;
    let inside = Arc::new(Inside::default());
    race(90, |n| {
        let (world, session, inside) = (world.clone(), session.clone(), Arc::clone(&inside));
        async move {
            match n % 3 {
                0 => append(&world, &session, n, &inside).await,
                1 => update(&world, &session, &inside).await,
                _ => transact(&world, &session, &inside).await,
            }
        }
    })
    .await;
    assert_eq!(world.history(session.id).await.len(), 30);
}

async fn append(world: &World, session: &Session, n: usize, inside: &Inside) {
    let context = world.context();
    let decide = |snapshot: &AppendSnapshot, requests: &[AppendRequest], ids: &dyn IdSource| {
        inside.visit();
        decide_append(snapshot, requests, &context, ids)
    };
    let batch = [text(session.id, &from_user(&session.user.user_id), &n.to_string(), "x")];
    world.stores.messages.append(&batch, &decide, world.ids.as_ref()).await.unwrap();
}

async fn update(world: &World, session: &Session, inside: &Inside) {
    let decide = |_: &Session, _: &dyn IdSource| {
        inside.visit();
        SessionVerdict::Keep
    };
    world.stores.sessions.update(session.id, &decide, world.ids.as_ref()).await.unwrap();
}

async fn transact(world: &World, session: &Session, inside: &Inside) {
    let decide = |_: &Snapshot, _: &dyn IdSource| {
        inside.visit();
        Verdict::Stale
    };
    world.transact(&Scope::new([], [session.id]), &decide).await.unwrap();
}
