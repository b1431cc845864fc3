//! How many messages a second one SQLite file takes: batches of 64 over 16 sessions for 3 seconds.
//!
//! `cargo run --release --example append_rate [folder]`; the folder decides which disk is measured.

#![expect(clippy::print_stdout, reason = "a probe prints its result")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use kefu_core::{Clock, SystemClock};
use kefu_messaging::AppendRequest;
use kefu_session::Session;
use kefu_sqlite::{SqliteOptions, SqliteStore};
use kefu_testkit::{World, build};

const SESSIONS: usize = 16;
const BATCH: usize = 64;
const SPAN: Duration = Duration::from_secs(3);
const CONTENT: &str = "您好，请问我的订单什么时候发货？ I would like to know.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::TempDir::new_in(folder)?;
    let store = SqliteStore::open(&folder.path().join("kefu.db"), SqliteOptions::default()).await?;
    let world = World::new(store.stores());
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        sessions.push(world.open(&format!("user-{number}"), 0).await);
    }
    let clock = SystemClock::new();
    let mut batches = 0_u32;
    while clock.monotonic() < SPAN {
        world.append(&batch(batches, &sessions)).await?;
        batches += 1;
    }
    let seconds = clock.monotonic().as_secs_f64();
    let rate = f64::from(batches) * BATCH as f64 / seconds;
    let each = seconds * 1_000.0 / f64::from(batches);
    println!("{rate:.0} messages/s, {each:.2} ms a batch of {BATCH}");
    store.close().await;
    Ok(())
}

fn batch(number: u32, sessions: &[Session]) -> Vec<AppendRequest> {
    let senders = sessions.iter().cycle().take(BATCH).enumerate();
    let request = |(place, session): (usize, &Session)| {
        let sender = build::from_user(&session.user.user_id);
        build::text(session.id, &sender, &format!("{number}-{place}"), CONTENT)
    };
    senders.map(request).collect()
}
