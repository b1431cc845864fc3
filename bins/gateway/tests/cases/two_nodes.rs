//! Ids under clocks that step and workers that collide. The clock of a running process cannot be
//! stepped from outside: other nodes are services of the same store, opened while the server is down,
//! and what they leave is then met by the real server.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use kefu_core::{
    Clock, IdSource as _, ManualClock, SessionId, SnowflakeIds, SystemClock, UserId, WorkerId,
};
use kefu_messaging::{Message, Sender};
use kefu_sqlite::SqliteStore;
use kefu_testkit::{World, build};
use serde_json::json;

use crate::support::{Client, Server};
use crate::{after, seqs, session_id};

/// A node over this store, its clock so many milliseconds from ours.
fn node(store: &SqliteStore, off_by_ms: i64) -> World {
    let world = World::new(store.stores());
    world.clock.step_wall(SystemClock::new().now().0 - world.clock.now().0 + off_by_ms);
    world
}

fn sender(name: &str) -> Result<Sender> {
    Ok(Sender::User(UserId::new(name)?))
}

fn rising(messages: &[Message]) -> bool {
    messages.windows(2).all(|pair| {
        let times = pair[0].create_time <= pair[1].create_time;
        times && pair[0].seq < pair[1].seq && pair[0].msg_id < pair[1].msg_id
    })
}

#[test]
fn b67_a_clock_that_steps_back_gives_no_id_twice() {
    let clock = Arc::new(ManualClock::default());
    let ids = SnowflakeIds::new(Arc::clone(&clock) as Arc<dyn Clock>, WorkerId::default(), 0);
    let mut given: Vec<i64> = (0..5_000).map(|_| ids.next_after(0)).collect();
    clock.step_wall(-5_000);
    given.extend((0..5_000).map(|_| ids.next_after(0)));
    assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "T3: it borrows ahead");
    assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b67_two_nodes_with_one_worker_id_overwrite_nothing_and_a_step_back_is_survived()
-> Result<()> {
    let mut server = Server::start().await?;
    let (_one, one) = Client::visitor(&server, "one").await?;
    let (_two, two) = Client::visitor(&server, "two").await?;
    server.kill()?;
    let (first, second): (SessionId, SessionId) =
        (session_id(&one).parse()?, session_id(&two).parse()?);
    let store = SqliteStore::open(&server.database(), Default::default()).await?;
    // An hour ahead, so that both generators begin with the very same id.
    let (a, b) = (node(&store, 3_600_000), node(&store, 0));
    b.clock.step_wall(a.clock.now().0 - b.clock.now().0);
    let kept = a.say(first, &sender("one")?, "k1", "the first").await;
    let collides = build::text(second, &sender("two")?, "k1", "the second");
    let refused = b.append(std::slice::from_ref(&collides)).await;
    ensure!(refused.is_err(), "the key holds (T2): {refused:?}");
    ensure!(a.history(first).await == [(*kept).clone()], "nothing was overwritten");
    ensure!(b.history(second).await.is_empty(), "nothing was half written");
    drop((a, b, store));

    let server = server.restart().await?;
    let (mut user, _) = Client::visitor(&server, "one").await?;
    let ack = user.say(&session_id(&one), "k2", "an hour earlier by the clock").await?;
    let id: i64 = ack["msgId"].as_str().unwrap_or_default().parse()?;
    ensure!(id > kept.msg_id.get(), "T3: above the highest id stored: {ack}");
    ensure!(ack["seq"] == 2, "{ack}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b68_a_node_with_an_odd_clock_keeps_the_order_of_positions() -> Result<()> {
    let mut server = Server::start().await?;
    let (mut user, connected) = Client::visitor(&server, "user").await?;
    let session = session_id(&connected);
    user.say(&session, "k1", "text 1").await?;
    server.kill()?;
    let store = SqliteStore::open(&server.database(), Default::default()).await?;
    let (slow, fast) = (node(&store, -300_000), node(&store, 300_000));
    let (id, user): (SessionId, _) = (session.parse()?, sender("user")?);
    // An id made before the others' and used after them would be burnt, not stored.
    let early = slow.ids.next_after(0);
    for (world, n) in [(&slow, 2), (&fast, 3), (&slow, 4), (&fast, 5)] {
        world.say(id, &user, &format!("k{n}"), &format!("text {n}")).await;
    }
    let stored = slow.history(id).await;
    ensure!(rising(&stored), "T1: {stored:?}");
    ensure!(stored.iter().all(|message| message.msg_id.get() != early));
    drop((slow, fast, store));

    let server = server.restart().await?;
    let resume = json!({"token": server.user("user"), "source": "test", "intent": "resume"});
    let (mut user, _) = Client::connect(&server, resume).await?;
    user.say(&session, "k6", "text 6").await?;
    let page = user.call("chat.history", after(&session, 0)).await?;
    ensure!(seqs(&page["messages"]) == [1, 2, 3, 4, 5, 6], "{page}");
    for (message, n) in page["messages"].as_array().into_iter().flatten().zip(1..) {
        ensure!(message["content"] == format!("text {n}"), "T1: {page}");
    }
    Ok(())
}
