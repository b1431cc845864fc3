//! Healing silent losses (M5): what was committed but not written to a live connection.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kefu_core::{ConnId, PageLimit, Seq, SessionId, StoreFault};
use kefu_messaging::{Parties, Push, Side, Window};

use crate::{Desk, Position};

/// Sessions looked up in one statement.
const CHUNK: usize = 1_000;

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
        let mut behind = HashMap::new();
        for position in positions {
            let tip = tips.get(&position.session_id).copied().unwrap_or_default();
            if position.written >= tip {
                continue;
            }
            let key = (position.conn, position.session_id);
            if suspects.behind.get(&key) == Some(&position.written) {
                self.push_missing(&position).await?;
            }
            behind.insert(key, position.written);
        }
        suspects.behind = behind;
        Ok(())
    }

    async fn push_missing(&self, position: &Position) -> Result<(), StoreFault> {
        let session = self.stores.sessions.find(position.session_id).await?;
        // The position was read earlier: who lost the session meanwhile gets nothing more (A3).
        let takes_part = session.is_some_and(|session| {
            let parties = Parties::from(&session);
            let on = |side| parties.on(side).as_ref() == Some(&position.person);
            on(Side::User) || on(Side::Agent)
        });
        if !takes_part {
            return Ok(());
        }
        metrics::counter!("kefu_healed_total").increment(1);
        let window = Window::After(position.written);
        let page =
            self.stores.messages.history(position.session_id, window, PageLimit::MAX).await?;
        for message in page.items {
            if self.fanout.bars(position.session_id, &position.person) {
                return Ok(());
            }
            // A position does not say on which side its connection is: the sender's key is left out.
            let push = Push::Message { message: Arc::new(message), attempt: 1, own: false };
            self.connections.push_one(position.conn, &push).await;
        }
        Ok(())
    }
}
