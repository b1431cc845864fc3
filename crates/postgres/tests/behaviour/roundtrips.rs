//! What a batch costs on the wire, and what is known when an answer is lost on it.

use kefu_core::StoreFault;
use kefu_messaging::{AppendOutcome, AppendRequest};
use kefu_postgres::{PgOptions, PgStore};
use kefu_session::Session;
use kefu_testkit::{World, build};

use crate::proxy::Proxy;
use crate::{Fixture, support};

/// One connection by way of a proxy.
async fn through(fixture: &Fixture, statement_cache: usize) -> (Proxy, World) {
    let proxy = Proxy::start(&fixture.database.url()).await;
    let options = PgOptions { max_connections: 1, statement_cache, ..support::options() };
    let store = PgStore::connect(&proxy.url(fixture.database.name()), options).await.unwrap();
    (proxy, World::new(store.stores()))
}

fn batch(sessions: &[Session], size: usize, name: &str) -> Vec<AppendRequest> {
    let senders = sessions.iter().cycle().take(size).enumerate();
    let request = |(place, session): (usize, &Session)| {
        let sender = build::from_user(&session.user.user_id);
        build::text(session.id, &sender, &format!("{name}-{place}"), "hello")
    };
    senders.map(request).collect()
}

const ROUNDS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_any_size_is_as_many_questions() {
    // One more than the batch's own, with which the pool looks at a connection that comes back.
    // Unnamed statements are described before they run.
    for (statement_cache, each) in [(128, 2 + 1), (0, 8 + 1)] {
        let fixture = Fixture::start().await;
        let (proxy, world) = through(&fixture, statement_cache).await;
        let mut sessions = Vec::new();
        for number in 0..8 {
            sessions.push(world.open(&format!("u{number}"), 0).await);
        }
        // Prepares the statements.
        world.append(&batch(&sessions, 8, "first")).await.unwrap();
        for size in [1, 8, 64, 256] {
            let before = proxy.questions();
            for round in 0..ROUNDS {
                world.append(&batch(&sessions, size, &format!("{size}-{round}"))).await.unwrap();
            }
            // That of the last return may come before or after.
            let asked = proxy.questions() - before;
            assert!(asked.abs_diff(ROUNDS * each) <= 1, "{asked} for {ROUNDS} batches of {size}");
        }
    }
}

/// T2: whether what was lost with its answer came through, its key tells: with the locked transaction's
/// commit, and with the statement that commits by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_is_indeterminate_and_found_by_its_key() {
    for (statement_cache, what) in [(0, "COMMIT"), (128, "a lost word")] {
        let fixture = Fixture::start().await;
        let (proxy, world) = through(&fixture, statement_cache).await;
        let session = world.open("u1", 0).await;
        let send = batch(std::slice::from_ref(&session), 3, "a lost word");
        proxy.lose_answer_to(what);
        let lost = world.append(&send).await;
        assert!(matches!(lost, Err(StoreFault::Indeterminate { .. })), "{what}: {lost:?}");
        assert_eq!(fixture.messages(), 3, "{what}");
        let again = world.append(&send).await.unwrap();
        assert!(again.messages.is_empty(), "nothing new");
        assert!(again.outcomes.iter().all(|outcome| matches!(
            outcome,
            AppendOutcome::Stored(stored) if stored.duplicate
        )));
        assert_eq!(fixture.messages(), 3, "{what}");
    }
}
