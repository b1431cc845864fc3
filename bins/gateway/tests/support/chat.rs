//! People who talk until told to stop, over whatever happens to their servers, and note what they are
//! told.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{Client, Ledger};

/// Until a client gives up an address that does not answer and tries the next.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// The pause of a client that reconnects, or repeats what was refused for now.
const AGAIN: Duration = Duration::from_millis(20);
/// Nobody talks for longer.
const AT_MOST: Duration = Duration::from_secs(600);

/// What everybody is to do.
#[derive(Debug, Clone, Default)]
pub(crate) enum Phase {
    /// Say one thing after the other.
    #[default]
    Talk,
    /// Repeat what was not acknowledged, then only listen.
    Listen,
    /// Go, once everything up to this position of the session is known.
    Go(Arc<HashMap<String, i64>>),
}

/// What all together have come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) acked: u64,
    /// Sends answered `unavailable`.
    pub(crate) unavailable: u64,
    /// People who only listen.
    pub(crate) listening: usize,
}

/// One person in one session.
pub(crate) struct Chatter {
    pub(crate) token: String,
    /// Where gateways are.
    pub(crate) addresses: watch::Receiver<Vec<SocketAddr>>,
    /// Which of them comes next.
    pub(crate) turn: usize,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) progress: Arc<watch::Sender<Progress>>,
    pub(crate) ledger: Ledger,
    next: u64,
    known: Known,
}

/// Positions of a session that a client knows.
#[derive(Debug, Default)]
struct Known {
    contiguous: i64,
    above: HashSet<i64>,
}

impl Known {
    fn insert(&mut self, seq: i64) {
        self.above.insert(seq);
        while self.above.remove(&(self.contiguous + 1)) {
            self.contiguous += 1;
        }
    }
}

impl Chatter {
    pub(crate) fn new(
        (name, token): (String, String),
        session: String,
        (addresses, turn): (watch::Receiver<Vec<SocketAddr>>, usize),
        phase: watch::Receiver<Phase>,
        progress: Arc<watch::Sender<Progress>>,
    ) -> Self {
        let ledger = Ledger { name, session, ..Ledger::default() };
        let known = Known::default();
        Self { token, addresses, turn, phase, progress, ledger, next: 0, known }
    }

    /// Talks until told to go.
    pub(crate) async fn chat(mut self) -> Result<Ledger> {
        let deadline = Instant::now() + AT_MOST;
        let mut listens = false;
        let mut last = None;
        while Instant::now() < deadline {
            // An error here is a lost server: connect again, as every client does.
            match self.connected(&mut listens).await {
                Ok(()) => return Ok(self.ledger),
                Err(error) => last = Some(error),
            }
            self.ledger.breaks += 1;
            self.turn += 1;
            // tidy: the pause of a reconnecting client.
            tokio::time::sleep(AGAIN).await;
        }
        bail!("{} never came to rest: {last:?}", self.ledger.name)
    }

    /// One connection's life; `Ok` when told to go.
    async fn connected(&mut self, listens: &mut bool) -> Result<()> {
        let mut client = self.resume().await?;
        // What was sent and not acknowledged goes again, first, under the same key.
        let is_open = |key: &&String| !self.ledger.acked.contains_key(*key);
        let open: Vec<String> = self.ledger.sent.iter().filter(is_open).cloned().collect();
        for key in open {
            self.say(&mut client, &key).await?;
        }
        while matches!(*self.phase.borrow(), Phase::Talk) {
            let key = format!("{}-{}", self.ledger.name, self.next);
            self.next += 1;
            self.ledger.sent.push(key.clone());
            self.say(&mut client, &key).await?;
        }
        if !std::mem::replace(listens, true) {
            self.progress.send_modify(|progress| progress.listening += 1);
        }
        loop {
            if let Phase::Go(ends) = &*self.phase.borrow_and_update() {
                let end = ends.get(&self.ledger.session).copied().unwrap_or(0);
                if self.known.contiguous >= end {
                    return Ok(());
                }
            }
            tokio::select! {
                changed = self.phase.changed() => changed?,
                frame = client.next() => self.hear(&mut client, &frame?).await?,
            }
        }
    }

    async fn resume(&mut self) -> Result<Client> {
        let address = {
            let addresses = self.addresses.borrow();
            *addresses.get(self.turn % addresses.len()).context("an address")?
        };
        let mut client = timeout(OPEN_WITHIN, Client::open_at(address)).await??;
        let (session, known) = (self.ledger.session.clone(), self.known.contiguous);
        let resume = json!({
            "token": self.token, "source": "chat", "intent": "resume",
            "sessionId": session, "lastSeq": known, "lastSeqs": {session.clone(): known},
        });
        let connected = client.call("chat.connect", resume).await?;
        let mut messages = connected["unread"].clone();
        let mut has_more = connected["hasMore"] == true;
        loop {
            for message in messages.as_array().into_iter().flatten() {
                self.see(message)?;
            }
            if !has_more {
                return Ok(client);
            }
            let after = json!({"sessionId": session, "afterSeq": self.known.contiguous});
            let page = client.call("chat.history", after).await?;
            messages = page["messages"].clone();
            has_more = page["hasMore"] == true;
        }
    }

    /// Says it until it is acknowledged.
    async fn say(&mut self, client: &mut Client, key: &str) -> Result<()> {
        let payload = json!({
            "sessionId": self.ledger.session, "msgType": "text", "content": key,
            "clientMsgId": key,
        });
        client.send("chat.message.send", payload.clone()).await?;
        while !self.ledger.acked.contains_key(key) {
            let frame = client.next().await?;
            let refused = frame["event"] == "chat.error" && frame["payload"]["clientMsgId"] == key;
            if refused && frame["payload"]["code"] == "unavailable" {
                self.progress.send_modify(|progress| progress.unavailable += 1);
                // tidy: the pause of a client whose send was refused for now.
                tokio::time::sleep(AGAIN).await;
                client.send("chat.message.send", payload.clone()).await?;
                continue;
            }
            self.hear(client, &frame).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, client: &mut Client, frame: &Value) -> Result<()> {
        let payload = &frame["payload"];
        match frame["event"].as_str() {
            Some("chat.message.server_ack") => self.acked(payload),
            Some("chat.message.new") => {
                self.see(payload)?;
                let ack = json!({"msgId": payload["msgId"], "status": "delivered"});
                client.send("chat.message.ack", ack).await
            }
            // A receipt that could not be stored: the message comes again (M3).
            Some("chat.error") if payload["code"] == "unavailable" => Ok(()),
            Some("chat.error") => bail!("refused: {frame}"),
            _ => Ok(()),
        }
    }

    fn acked(&mut self, payload: &Value) -> Result<()> {
        let key = payload["clientMsgId"].as_str().context("clientMsgId")?.to_owned();
        let answer = position(payload)?;
        let known = self.ledger.acked.insert(key.clone(), answer);
        ensure!(known.is_none_or(|known| known == answer), "two answers to {key}");
        self.known.insert(answer.1);
        if known.is_none() {
            self.progress.send_modify(|progress| progress.acked += 1);
        }
        Ok(())
    }

    /// One's own come back too, above a position (M4).
    fn see(&mut self, message: &Value) -> Result<()> {
        let (id, seq) = position(message)?;
        self.known.insert(seq);
        let is_own = message["senderId"].as_str() == Some(&self.ledger.name);
        if is_own {
            return Ok(());
        }
        if self.ledger.seen.iter().rev().any(|(known, _)| *known == id) {
            self.ledger.seen_again += 1;
        } else {
            self.ledger.seen.push((id, seq));
        }
        Ok(())
    }
}

fn position(payload: &Value) -> Result<(i64, i64)> {
    let id = payload["msgId"].as_str().context("msgId")?.parse()?;
    Ok((id, payload["seq"].as_i64().context("seq")?))
}
