//! Healing silent losses (M5): what was committed but not written to a live connection.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kefu_core::{ConnId, PageLimit, Person, Seq, SessionId, StoreFault};
use kefu_messaging::{Message, MessageStatus, Parties, Push, Side, Window};

use crate::{Desk, Position};

/// Sessions looked up in one statement.
const CHUNK: usize = 1_000;

/// Pages that one connection gets of a session at one look, and how far they are apart.
const ROUNDS: usize = 40;
const APART: Duration = Duration::from_millis(100);
/// Pages of receipts that are told between two rests.
const TOGETHER: usize = 50;
/// Pages of a session whose receipts are told again: more than a person's page shows while it stays open.
const PAGES: usize = 20;
/// That rest: the store serves people first.
const PACE: Duration = Duration::from_millis(20);

/// What the previous look found behind: a position that has not moved since is lost, one that has
/// was only on its way.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    behind: HashMap<(ConnId, SessionId), Seq>,
}

impl Desk {
    /// Compares what was written to each connection with each session's last position, and pushes
    /// again what stayed behind since the previous look.
    pub(crate) async fn heal(&self, suspects: &mut Suspects) -> Result<(), StoreFault> {
        let positions = self.connections.positions();
        let sessions: BTreeSet<_> = positions.iter().map(|position| position.session_id).collect();
        let sessions: Vec<_> = sessions.into_iter().collect();
        let mut tips = HashMap::with_capacity(sessions.len());
        for chunk in sessions.chunks(CHUNK) {
            tips.extend(self.stores.sessions.list_tips(chunk).await?);
        }
        let (mut behind, mut lost) = (HashMap::new(), Vec::new());
        for position in positions {
            let tip = tips.get(&position.session_id).copied().unwrap_or_default();
            if position.written >= tip {
                continue;
            }
            let key = (position.conn, position.session_id);
            behind.insert(key, position.written);
            if suspects.behind.get(&key) == Some(&position.written) {
                lost.push(position);
            }
        }
        for left in self.push_lost(lost).await? {
            // The next look goes on from there.
            behind.insert((left.conn, left.session_id), left.written);
        }
        suspects.behind = behind;
        Ok(())
    }

    /// Pushes what is missing, a page to each in turn; gives those who still lack something.
    async fn push_lost(&self, mut lost: Vec<Position>) -> Result<Vec<Position>, StoreFault> {
        for _ in 0..ROUNDS {
            let mut left = Vec::new();
            for position in lost {
                left.extend(self.push_missing(position).await?);
            }
            if left.is_empty() {
                return Ok(left);
            }
            lost = left;
            // What was pushed shall be written before more comes (L1).
            tokio::time::sleep(APART).await;
        }
        Ok(lost)
    }

    /// Pushes a page of what is missing; the position after it if there is more.
    async fn push_missing(&self, position: Position) -> Result<Option<Position>, StoreFault> {
        // Gone between two pages: what is stored waits for them (M4).
        if !self.connections.holds(&position.person) {
            return Ok(None);
        }
        let session = self.stores.sessions.find(position.session_id).await?;
        // The position was read earlier: who lost the session meanwhile gets nothing more (A3).
        let takes_part = session.is_some_and(|session| {
            let parties = Parties::from(&session);
            let on = |side| parties.on(side).as_ref() == Some(&position.person);
            on(Side::User) || on(Side::Agent)
        });
        // A supervisor who looks on has lost nothing (A3).
        let looks_on = self.watchers.is_watching(position.conn, position.session_id);
        if !takes_part && !looks_on {
            return Ok(None);
        }
        metrics::counter!("kefu_healed_total").increment(1);
        let window = Window::After(position.written);
        let page =
            self.stores.messages.history(position.session_id, window, PageLimit::MAX).await?;
        let last = page.items.last().map(|message| message.seq);
        for message in page.items {
            // A position does not say on which side its connection is: the sender's key is left out.
            let push = Push::Message { message: Arc::new(message), attempt: 1, own: false };
            if looks_on {
                self.connections.push_one(position.conn, &push).await;
            } else if !self.push_to_position(&position, &push).await {
                return Ok(None);
            }
        }
        let last = last.filter(|_| page.has_more);
        Ok(last.map(|written| Position { written, ..position }))
    }

    /// Tells again how the messages of everybody here stand, the newest first: the word of a receipt is said once,
    /// and no row tells when it was recorded (N4). Repeating one changes nothing for its client.
    pub(crate) async fn repeat_receipts(&self) -> Result<(), StoreFault> {
        let mut of_session: BTreeMap<SessionId, Vec<Position>> = BTreeMap::new();
        for position in self.connections.positions() {
            of_session.entry(position.session_id).or_default().push(position);
        }
        let mut read = 0;
        for (session, positions) in &of_session {
            let mut upto = Seq(i64::MAX);
            for _ in 0..PAGES {
                if read > 0 && read % TOGETHER == 0 {
                    // A chosen pace (N4).
                    tokio::time::sleep(PACE).await;
                }
                read += 1;
                let (window, limit) = (Window::Before(upto), PageLimit::MAX);
                let page = self.stores.messages.history(*session, window, limit).await?;
                for position in positions {
                    self.repeat_to(position, &page.items).await;
                }
                match page.items.first() {
                    Some(oldest) if page.has_more => upto = oldest.seq,
                    Some(_) | None => break,
                }
            }
        }
        Ok(())
    }

    async fn repeat_to(&self, position: &Position, messages: &[Message]) {
        let side = match position.person {
            Person::User(_) => Side::User,
            Person::Agent(_) => Side::Agent,
        };
        let settled = |message: &&Message| {
            message.sender.side() == side && message.status != MessageStatus::Pending
        };
        for message in messages.iter().filter(settled) {
            let push = Push::PeerAck {
                session_id: message.session_id,
                msg_id: message.msg_id,
                seq: message.seq,
                status: message.status,
                side,
            };
            if !self.push_to_position(position, &push).await {
                return;
            }
        }
    }

    /// Pushes to a connection unless its person lost the session meanwhile; says whether it did (A3).
    async fn push_to_position(&self, position: &Position, push: &Push) -> bool {
        let pushed = self.connections.push_one(position.conn, push);
        self.turns.unless_barred(position.session_id, &position.person, pushed).await
    }
}
