//! `kill -9` of the gateway at random moments under chatting pairs; afterwards every client's acks
//! against the tables: nothing acked is missing, doubled or out of order.
//!
//! The suite runs a short form; `cargo xtask show kill` sets `KEFU_KILL_ROUNDS=20` and
//! `KEFU_KILL_PAIRS=50`. `KEFU_SEED` repeats a run's moments.

#![expect(clippy::print_stdout, reason = "the figures are what this test is run for")]

mod support;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kefu_core::{PageLimit, Seq, SessionId};
use kefu_messaging::{Message, Window};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{
    Chatter, Client, Ledger, Phase, Progress, Report, Row, Server, ServerBuilder, setting,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acked_is_lost_doubled_or_reordered() -> Result<()> {
    let rounds = setting("KEFU_KILL_ROUNDS", 3);
    let pairs = setting("KEFU_KILL_PAIRS", 10);
    let seed = setting("KEFU_SEED", rand::random());
    println!("kill: {rounds} rounds, {pairs} pairs, KEFU_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = ServerBuilder::default()
        .set("KEFU__LIMITS__MESSAGE_BURST", 1_000_000)
        .set("KEFU__LIMITS__MESSAGES_PER_SECOND", 1_000_000)
        .set("KEFU__LIMITS__CONNECTS_PER_MINUTE", 1_000_000)
        .start()
        .await?;

    let (phase, phases) = watch::channel(Phase::Talk);
    let (_addresses, address) = watch::channel(vec![server.address]);
    let progress = Arc::new(watch::Sender::new(Progress::default()));
    let mut people = JoinSet::new();
    let sessions = pair_up(&server, pairs).await?;
    for (number, session) in sessions.iter().enumerate() {
        let people_of_pair = [
            (format!("user-{number}"), server.user(&format!("user-{number}"))),
            (format!("agent-{number}"), server.agent(&format!("agent-{number}"))),
        ];
        for (name, token) in people_of_pair {
            let place = (address.clone(), 0);
            let progress = Arc::clone(&progress);
            let chatter =
                Chatter::new((name, token), session.clone(), place, phases.clone(), progress);
            people.spawn(chatter.chat());
        }
    }
    for _ in 0..rounds {
        let moment = Duration::from_millis(random.random_range(200..1_500));
        // tidy: the random moment of the crash is what the test is about, it synchronises nothing.
        tokio::time::sleep(moment).await;
        server = server.kill_and_restart().await?;
    }
    phase.send(Phase::Go(Arc::default()))?;
    let mut ledgers = Vec::new();
    while let Some(ledger) = people.join_next().await {
        ledgers.push(ledger??);
    }
    server.kill()?;
    compare(&server, &ledgers).await
}

/// Opens one session per pair, each with an agent of its own.
async fn pair_up(server: &Server, pairs: u64) -> Result<Vec<String>> {
    let mut sessions = Vec::new();
    for number in 0..pairs {
        let (_agent, _) = Client::agent(server, &format!("agent-{number}"), 1).await?;
        let (mut user, connected) = Client::visitor(server, &format!("user-{number}")).await?;
        user.expect("chat.session.assigned").await?;
        sessions.push(connected["sessionId"].as_str().context("a session")?.to_owned());
    }
    Ok(sessions)
}

/// Every ledger against the tables, read after the last crash.
async fn compare(server: &Server, ledgers: &[Ledger]) -> Result<()> {
    let store = kefu_sqlite::SqliteStore::open(&server.database(), Default::default()).await?;
    let stores = store.stores();
    let mut rows: BTreeMap<String, Vec<Message>> = BTreeMap::new();
    let ids: HashSet<&str> = ledgers.iter().map(|ledger| ledger.session.as_str()).collect();
    for id in ids {
        let mut messages = Vec::new();
        let session: SessionId = id.parse()?;
        loop {
            let after = messages.last().map_or(Seq(0), |message: &Message| message.seq);
            let page =
                stores.messages.history(session, Window::After(after), PageLimit::MAX).await?;
            messages.extend(page.items);
            if !page.has_more {
                break;
            }
        }
        rows.insert(id.to_owned(), messages);
    }
    let rows = rows.into_iter().map(|(id, messages)| (id, messages.iter().map(row).collect()));
    let report = Report::of(ledgers, &rows.collect());
    println!("{report:?}");
    report.is_clean()
}

fn row(message: &Message) -> Row {
    Row {
        msg_id: message.msg_id.get(),
        seq: message.seq.0,
        key: message.client_msg_id.as_str().to_owned(),
        create_time: message.create_time.0,
    }
}
