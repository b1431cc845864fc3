//! `kill -9` of the gateway at random moments under chatting pairs; afterwards every client's acks
//! against the tables: nothing acked is missing, doubled or out of order.
//!
//! The suite runs a short form; `cargo xtask show kill` sets `KEFU_KILL_ROUNDS=20` and
//! `KEFU_KILL_PAIRS=50`. `KEFU_SEED` repeats a run's moments.

#![expect(clippy::print_stdout, reason = "the figures are what this test is run for")]

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kefu_core::{PageLimit, Seq, SessionId};
use kefu_messaging::{Message, Window};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use support::{Client, Server, ServerBuilder};
use tokio::sync::watch;
use tokio::task::JoinSet;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

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

    let (stop, stopped) = watch::channel(false);
    let mut people = JoinSet::new();
    let sessions = pair_up(&server, pairs).await?;
    for (number, session) in sessions.iter().enumerate() {
        let people_of_pair = [
            (format!("user-{number}"), server.user(&format!("user-{number}"))),
            (format!("agent-{number}"), server.agent(&format!("agent-{number}"))),
        ];
        for (name, token) in people_of_pair {
            let chatter = Chatter::new(name, token, server.address, session.clone());
            people.spawn(chatter.chat(stopped.clone()));
        }
    }
    for _ in 0..rounds {
        let moment = Duration::from_millis(random.random_range(200..1_500));
        // tidy: the random moment of the crash is what the test is about, it synchronises nothing.
        tokio::time::sleep(moment).await;
        server = server.kill_and_restart().await?;
    }
    stop.send(true)?;
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

/// What one client knows at the end.
struct Ledger {
    name: String,
    session: String,
    /// Keys in the order in which they were first sent.
    sent: Vec<String>,
    /// What the server acknowledged.
    acked: HashMap<String, (String, i64)>,
    /// Message ids in the order in which they were first seen, with their positions.
    seen: Vec<(String, i64)>,
}

struct Chatter {
    token: String,
    address: SocketAddr,
    ledger: Ledger,
    next: u64,
}

impl Chatter {
    fn new(name: String, token: String, address: SocketAddr, session: String) -> Self {
        let ledger =
            Ledger { name, session, sent: Vec::new(), acked: HashMap::new(), seen: Vec::new() };
        Self { token, address, ledger, next: 0 }
    }

    /// Talks until told to stop and everything sent is acknowledged.
    async fn chat(mut self, stopped: watch::Receiver<bool>) -> Result<Ledger> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(600);
        while tokio::time::Instant::now() < deadline {
            // An error here is a killed server: connect again, as every client does.
            if let Ok(()) = self.connected(&stopped).await {
                return Ok(self.ledger);
            }
            // tidy: the pause of a reconnecting client.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::bail!("{} never came to rest", self.ledger.name)
    }

    /// One connection's life; `Ok` when all is said and acknowledged.
    async fn connected(&mut self, stopped: &watch::Receiver<bool>) -> Result<()> {
        let mut client = Client::open_at(self.address).await?;
        let top = self.ledger.seen.iter().map(|(_, seq)| *seq).max().unwrap_or(0);
        let connected = client
            .call(
                "chat.connect",
                json!({
                    "token": self.token, "source": "kill", "intent": "resume",
                    "sessionId": self.ledger.session, "lastSeq": top,
                    "lastSeqs": {self.ledger.session.clone(): top},
                }),
            )
            .await?;
        for message in connected["unread"].as_array().into_iter().flatten() {
            self.see(message);
        }
        // What was sent and not acknowledged goes again, first, under the same key.
        let open: Vec<String> = self
            .ledger
            .sent
            .iter()
            .filter(|key| !self.ledger.acked.contains_key(*key))
            .cloned()
            .collect();
        for key in open {
            self.say(&mut client, &key).await?;
        }
        while !*stopped.borrow() {
            let key = format!("{}-{}", self.ledger.name, self.next);
            self.next += 1;
            self.ledger.sent.push(key.clone());
            self.say(&mut client, &key).await?;
        }
        Ok(())
    }

    async fn say(&mut self, client: &mut Client, key: &str) -> Result<()> {
        let payload = json!({
            "sessionId": self.ledger.session, "msgType": "text", "content": key,
            "clientMsgId": key,
        });
        client.send("chat.message.send", payload).await?;
        loop {
            let frame = client.next().await?;
            let payload = &frame["payload"];
            match frame["event"].as_str() {
                Some("chat.message.server_ack") => {
                    let id = payload["msgId"].as_str().context("msgId")?.to_owned();
                    let seq = payload["seq"].as_i64().context("seq")?;
                    let known = self.ledger.acked.insert(key.to_owned(), (id.clone(), seq));
                    ensure!(known.is_none_or(|k| k == (id, seq)), "two answers to {key}");
                    return Ok(());
                }
                Some("chat.message.new") => {
                    self.see(payload);
                    let ack = json!({"msgId": payload["msgId"], "status": "delivered"});
                    client.send("chat.message.ack", ack).await?;
                }
                Some("chat.error") => anyhow::bail!("refused: {frame}"),
                _ => {}
            }
        }
    }

    fn see(&mut self, message: &Value) {
        let id = message["msgId"].as_str().unwrap_or_default().to_owned();
        let seq = message["seq"].as_i64().unwrap_or_default();
        if !self.ledger.seen.iter().rev().any(|(known, _)| *known == id) {
            self.ledger.seen.push((id, seq));
        }
    }
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
    let report = Report::of(ledgers, &rows);
    println!("{report:?}");
    ensure!(report.acked > 0, "nothing was acknowledged: the test showed nothing");
    ensure!(report.missing == 0, "acked but missing");
    ensure!(report.duplicate == 0, "stored twice");
    ensure!(report.out_of_order == 0, "out of order");
    ensure!(report.gaps == 0, "a gap in seq");
    Ok(())
}

#[derive(Debug, Default)]
struct Report {
    acked: usize,
    stored: usize,
    missing: usize,
    duplicate: usize,
    out_of_order: usize,
    gaps: usize,
}

impl Report {
    fn of(ledgers: &[Ledger], rows: &BTreeMap<String, Vec<Message>>) -> Self {
        let mut report = Self::default();
        for messages in rows.values() {
            report.stored += messages.len();
            let keys: HashSet<_> = messages.iter().map(|m| m.client_msg_id.as_str()).collect();
            report.duplicate += messages.len() - keys.len();
            report.gaps +=
                messages.iter().zip(1..).filter(|(message, seq)| message.seq != Seq(*seq)).count();
            let ordered = |pair: &[Message]| {
                pair[0].msg_id < pair[1].msg_id && pair[0].create_time <= pair[1].create_time
            };
            report.out_of_order += messages.windows(2).filter(|pair| !ordered(pair)).count();
        }
        for ledger in ledgers {
            report.check(ledger, &rows[&ledger.session]);
        }
        report
    }

    fn check(&mut self, ledger: &Ledger, rows: &[Message]) {
        let by_key: HashMap<_, _> = rows.iter().map(|m| (m.client_msg_id.as_str(), m)).collect();
        self.acked += ledger.acked.len();
        for (key, (id, seq)) in &ledger.acked {
            let found = by_key.get(key.as_str());
            let same = found.is_some_and(|m| m.msg_id.to_string() == *id && m.seq == Seq(*seq));
            self.missing += usize::from(!same);
        }
        let seqs: Vec<_> =
            ledger.sent.iter().filter_map(|key| by_key.get(key.as_str())).map(|m| m.seq).collect();
        self.out_of_order += seqs.windows(2).filter(|pair| pair[0] >= pair[1]).count();
        let stored: HashSet<_> = rows.iter().map(|m| m.msg_id.to_string()).collect();
        self.missing += ledger.seen.iter().filter(|(id, _)| !stored.contains(id)).count();
    }
}
