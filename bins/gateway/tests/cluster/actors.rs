//! Visitors, agents and supervisors who ask for whatever comes into their heads, all at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::{Client, Server};

/// What may be refused in a race; every other error is a fault.
const REFUSALS: [&str; 5] =
    ["conflict", "not_found", "session_closed", "agent_unavailable", "bad_request"];

/// What all actors share.
pub(crate) struct Scene {
    /// Requests still to be made.
    left: AtomicU64,
    agents: Vec<String>,
    /// Sessions that somebody heard of lately, in any state, one a visitor.
    sessions: Mutex<Vec<String>>,
    /// How often each request had each end.
    answers: Mutex<BTreeMap<String, u64>>,
}

impl Scene {
    pub(crate) fn new(requests: u64, agents: Vec<String>, sessions: Vec<String>) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(requests),
            agents,
            sessions: Mutex::new(sessions),
            answers: Mutex::default(),
        })
    }

    /// Takes one request of those left.
    fn takes(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn any_session(&self, random: &mut StdRng) -> String {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.choose(random).cloned().unwrap_or_default()
    }

    fn any_agent(&self, random: &mut StdRng) -> String {
        self.agents.choose(random).cloned().unwrap_or_default()
    }

    fn note(&self, event: &str, answer: &Value) -> Result<()> {
        let end = match answer["event"] == "chat.error" {
            true => answer["payload"]["code"].as_str().context("a code")?,
            false => "done",
        };
        ensure!(end == "done" || REFUSALS.contains(&end), "{event}: {answer}");
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(format!("{event} {end}")).or_default() += 1;
        Ok(())
    }

    /// How often each request had each end.
    pub(crate) fn answers(&self) -> BTreeMap<String, u64> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Somebody with a socket and a mind of their own.
pub(crate) struct Actor {
    scene: Arc<Scene>,
    pub(crate) client: Client,
    random: StdRng,
}

impl Actor {
    pub(crate) fn new(scene: &Arc<Scene>, client: Client, seed: u64) -> Self {
        Self { scene: Arc::clone(scene), client, random: StdRng::seed_from_u64(seed) }
    }

    async fn asks(&mut self, event: &str, payload: Value, desk: &mut Desk) -> Result<Value> {
        let answer = self.client.ask(event, payload).await?;
        self.scene.note(event, &answer)?;
        // In the order in which they came: nothing is read beyond the answer.
        for frame in self.client.take_inbox() {
            desk.hears(&frame);
        }
        desk.hears(&answer);
        Ok(answer["payload"].clone())
    }

    /// Consults and ends, over and over.
    pub(crate) async fn visits(mut self, number: usize, token: String) -> Result<Self> {
        let (mut session, mut desk) = (String::new(), Desk::default());
        while self.scene.takes() {
            if session.is_empty() || self.random.random_bool(0.8) {
                let consult = json!({"token": token, "source": "race"});
                let connected = self.asks("chat.connect", consult, &mut desk).await?;
                session = crate::session_id(&connected)?;
                let mut all = self.scene.sessions.lock().unwrap_or_else(PoisonError::into_inner);
                all[number].clone_from(&session);
            } else {
                self.asks("chat.session.end", json!({"sessionId": session}), &mut desk).await?;
            }
        }
        Ok(self)
    }

    /// Claims, transfers, ends, and leaves for a moment, giving everything back. Gives what it takes
    /// to be its own sessions at the end.
    pub(crate) async fn serves(mut self, cap: u32) -> Result<(Self, Desk)> {
        let mut desk = Desk::default();
        while self.scene.takes() {
            let any = self.scene.any_session(&mut self.random);
            let own = desk.any(&mut self.random);
            match (self.random.random_range(0..100), own) {
                (45..75, own) => {
                    let target = self.scene.any_agent(&mut self.random);
                    let session = own.unwrap_or(any);
                    let transfer = json!({"sessionId": session, "targetAdminId": target});
                    self.asks("chat.session.transfer", transfer, &mut desk).await?;
                }
                // Nobody ends what is not on their screen.
                (75..98, Some(own)) => {
                    self.asks("chat.session.end", json!({"sessionId": own}), &mut desk).await?;
                }
                (98.., _) => {
                    let leave = json!({"requeue": true});
                    self.asks("chat.agent.offline", leave, &mut desk).await?;
                    self.client.call("chat.agent.online", json!({"maxSessions": cap})).await?;
                }
                _ => {
                    let claim = json!({"sessionId": any});
                    self.asks("chat.session.claim", claim, &mut desk).await?;
                }
            }
        }
        Ok((self, desk))
    }

    /// Transfers and ends whatever there is.
    pub(crate) async fn supervises(mut self) -> Result<Self> {
        let mut desk = Desk::default();
        while self.scene.takes() {
            let session = self.scene.any_session(&mut self.random);
            if self.random.random_bool(0.7) {
                let target = self.scene.any_agent(&mut self.random);
                let transfer = json!({"sessionId": session, "targetAdminId": target});
                self.asks("chat.session.transfer", transfer, &mut desk).await?;
            } else {
                self.asks("chat.session.end", json!({"sessionId": session}), &mut desk).await?;
            }
        }
        Ok(self)
    }
}

/// What an agent's console would show.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) own: BTreeSet<String>,
}

impl Desk {
    pub(crate) fn hears(&mut self, frame: &Value) {
        let Some(session) = frame["payload"]["sessionId"].as_str() else { return };
        match frame["event"].as_str() {
            Some("chat.session.new") => {
                self.own.insert(session.to_owned());
            }
            Some("chat.session.removed" | "chat.session.ended") => {
                self.own.remove(session);
            }
            _ => {}
        }
    }

    fn any(&self, random: &mut StdRng) -> Option<String> {
        let own: Vec<_> = self.own.iter().collect();
        own.choose(random).map(|session| (*session).clone())
    }
}

/// A supervisor's socket.
pub(crate) async fn supervisor(server: &Server, name: &str) -> Result<Client> {
    let (client, _) = Client::connect(server, json!({"token": server.supervisor(name)})).await?;
    Ok(client)
}
