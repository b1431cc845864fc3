//! A batch that commits by itself writes nothing once what it was decided on has changed (ADR 0016).

use std::sync::Mutex;

use kefu_core::IdSource;
use kefu_messaging::{
    AppendOutcome, AppendRequest, AppendSnapshot, AppendVerdict, Receipt, decide_append,
};
use kefu_session::Session;
use kefu_testkit::{World, build};

use crate::Fixture;

/// Between the read and the statement, once.
type Meanwhile<'a> = Mutex<Option<Box<dyn FnOnce() + Send + 'a>>>;

/// Appends a batch; `meanwhile` happens after its first decision. Gives how often it was decided.
async fn append_while(
    world: &World,
    batch: &[AppendRequest],
    meanwhile: Meanwhile<'_>,
) -> (AppendVerdict, usize) {
    let context = world.context();
    let tries = Mutex::new(0);
    let decide = |snapshot: &AppendSnapshot, batch: &[AppendRequest], ids: &dyn IdSource| {
        let verdict = decide_append(snapshot, batch, &context, ids);
        *tries.lock().unwrap() += 1;
        if let Some(meanwhile) = meanwhile.lock().unwrap().take() {
            meanwhile();
        }
        verdict
    };
    let verdict = world.stores.messages.append(batch, &decide, world.ids.as_ref()).await.unwrap();
    (verdict, tries.into_inner().unwrap())
}

fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work))
}

fn text(session: &Session, key: &str) -> AppendRequest {
    build::text(session.id, &build::from_user(&session.user.user_id), key, "hello")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undisturbed_batch_is_decided_once() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let session = world.open("u1", 0).await;
    let by_user = build::text_to_open(&session.user.user_id, "k2", "hello");
    let batch = [text(&session, "k1"), by_user, text(&session, "k1")];
    let (verdict, tries) = append_while(world, &batch, Mutex::default()).await;
    assert_eq!((tries, verdict.messages.len()), (1, 2));
    let places: Vec<_> = world.history(session.id).await.iter().map(|m| m.seq.0).collect();
    assert_eq!(places, [1, 2], "T1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_message_in_between_is_seen() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let (session, other) = (world.open("u1", 0).await, world.open("u2", 0).await);
    let batch = [text(&session, "k1"), text(&other, "k1")];
    let between = || now(world.append(&[text(&session, "k0")])).map(|_| ()).unwrap();
    let (verdict, tries) = append_while(world, &batch, Mutex::new(Some(Box::new(between)))).await;
    assert_eq!(tries, 2, "nothing of the first was written");
    assert_eq!(verdict.messages.iter().map(|m| m.seq.0).collect::<Vec<_>>(), [2, 1], "T1");
    assert_eq!(fixture.messages(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_key_in_between_is_a_repeat() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let session = world.open("u1", 0).await;
    let batch = [text(&session, "k1")];
    let between = || now(world.append(&batch)).map(|_| ()).unwrap();
    let (verdict, tries) = append_while(world, &batch, Mutex::new(Some(Box::new(between)))).await;
    assert_eq!(tries, 2);
    assert!(matches!(&verdict.outcomes[0], AppendOutcome::Stored(it) if it.duplicate), "T2");
    assert_eq!(fixture.messages(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_in_between_refuses() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let session = world.open("u1", 0).await;
    let caller = build::user_caller(&session.user.user_id);
    let batch = [text(&session, "k1")];
    let between = || now(world.end(&caller, session.id)).map(|_| ()).unwrap();
    let (verdict, tries) = append_while(world, &batch, Mutex::new(Some(Box::new(between)))).await;
    assert_eq!(tries, 2);
    assert!(matches!(verdict.outcomes[0], AppendOutcome::Refused(_)), "S2");
    assert_eq!(fixture.messages(), 0);
}

/// A repeat gets its first answer, also of a session that has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_key_is_left_to_the_locked_transaction() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let session = world.open("u1", 0).await;
    let batch = [text(&session, "k1")];
    let first = world.append(&batch).await.unwrap();
    let (again, tries) = append_while(world, &batch, Mutex::default()).await;
    assert_eq!((tries, again.messages.len()), (2, 0));
    world.end(&build::user_caller(&session.user.user_id), session.id).await.unwrap();
    let (after, tries) = append_while(world, &batch, Mutex::default()).await;
    assert_eq!((tries, after.messages.len()), (2, 0));
    for verdict in [again, after] {
        let AppendOutcome::Stored(stored) = &verdict.outcomes[0] else { panic!("{verdict:?}") };
        assert_eq!(stored.message.msg_id, first.messages[0].msg_id, "T2");
    }
}

/// T3: whose worker id another node has by now writes nothing, also without a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_worker_id_writes_nothing() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let session = world.open("u1", 0).await;
    let node = kefu_core::NodeName::new("n1").unwrap();
    let lease = std::time::Duration::from_secs(60);
    let _lease = fixture.store.lease_worker(&node, lease).await.unwrap();
    world.append(&[text(&session, "k1")]).await.unwrap();
    fixture.database.query("UPDATE cg_worker SET epoch = epoch + 1");
    let lost = world.append(&[text(&session, "k2")]).await;
    assert!(matches!(lost, Err(kefu_core::StoreFault::Unavailable { .. })), "{lost:?}");
    assert_eq!(fixture.messages(), 1);
}

/// Two reports of one message at once: it is told once (M3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_that_was_overtaken_is_not_told_again() {
    let fixture = Fixture::start().await;
    let world = &fixture.world;
    let session = world.open("u1", 0).await;
    let admin = world.agent("a1", 1).await;
    world.claim(&admin, session.id).await.unwrap();
    let sent = world.append(&[text(&session, "k1")]).await.unwrap().messages[0].msg_id;
    let agent = build::agent_caller(&admin);
    let report = [build::receipt(&agent, sent, Receipt::Delivered)];
    let overtaken = Mutex::new(false);
    let decide = |snapshot: &kefu_messaging::ReceiptSnapshot,
                  batch: &[kefu_messaging::ReceiptRequest]| {
        let verdict = kefu_messaging::decide_receipts(snapshot, batch);
        if !std::mem::replace(&mut *overtaken.lock().unwrap(), true) {
            now(world.report(&report)).unwrap();
        }
        verdict
    };
    let verdict = world.stores.messages.record(&report, &decide).await.unwrap();
    assert_eq!(verdict.outcomes.len(), 1);
    assert!(verdict.changes.is_empty(), "the other one told it");
}
