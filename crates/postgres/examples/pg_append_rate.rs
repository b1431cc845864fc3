//! How many messages a second PostgreSQL takes: batches of 64, each over 16 sessions of its writer's own,
//! for 3 seconds by one, two and four writers.
//!
//! `cargo run --release --example pg_append_rate [url]`; without a URL it starts a server, which
//! flushes every commit. The database must be empty.

#![expect(clippy::print_stdout, reason = "a probe prints its result")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kefu_core::{Clock, StoreFault, SystemClock};
use kefu_messaging::AppendRequest;
use kefu_postgres::{PgOptions, PgStore};
use kefu_session::Session;
use kefu_testkit::server::postgres::PostgresServer;
use kefu_testkit::{World, build};
use tokio::task::JoinSet;

const SESSIONS: usize = 16;
const BATCH: usize = 64;
const SPAN: Duration = Duration::from_secs(3);
const CONTENT: &str = "您好，请问我的订单什么时候发货？ I would like to know.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1);
    let server = given.is_none().then(PostgresServer::start);
    let own = server.as_ref().map(|server| server.url("postgres"));
    let url = given.or(own).ok_or("no server")?;
    PgStore::migrate(&url).await?;
    let store = PgStore::connect(&url, PgOptions::default()).await?;
    let world = World::new(store.stores());
    for writers in [1, 2, 4] {
        measure(&world, writers).await?;
    }
    store.close().await;
    Ok(())
}

async fn measure(world: &World, writers: usize) -> Result<(), Box<dyn Error>> {
    let clock = Arc::new(SystemClock::new());
    let start = clock.monotonic();
    let mut running = JoinSet::new();
    for writer in 0..writers {
        let (world, clock) = (world.clone(), Arc::clone(&clock));
        running.spawn(async move { write(&world, clock.as_ref(), writer).await });
    }
    let mut batches = 0;
    while let Some(written) = running.join_next().await {
        batches += written??;
    }
    let seconds = (clock.monotonic() - start).as_secs_f64();
    let rate = f64::from(batches) * BATCH as f64 / seconds;
    let each = seconds * 1_000.0 * writers as f64 / f64::from(batches);
    println!("{writers} writers: {rate:.0} messages/s, {each:.2} ms a batch of {BATCH}");
    Ok(())
}

async fn write(world: &World, clock: &SystemClock, writer: usize) -> Result<u32, StoreFault> {
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        sessions.push(world.open(&format!("user-{writer}-{number}"), 0).await);
    }
    let run = clock.monotonic().as_nanos();
    let end = clock.monotonic() + SPAN;
    let mut batches = 0;
    while clock.monotonic() < end {
        world.append(&batch(run, batches, &sessions)).await?;
        batches += 1;
    }
    Ok(batches)
}

fn batch(run: u128, number: u32, sessions: &[Session]) -> Vec<AppendRequest> {
    let senders = sessions.iter().cycle().take(BATCH).enumerate();
    let request = |(place, session): (usize, &Session)| {
        let sender = build::from_user(&session.user.user_id);
        build::text(session.id, &sender, &format!("{run}-{number}-{place}"), CONTENT)
    };
    senders.map(request).collect()
}
