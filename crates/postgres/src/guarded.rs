//! A batch of sends without a lock held between two answers: read the sessions, decide, and write in one
//! statement that writes nothing unless the sessions are still as they were read (ADR 0016).
//!
//! Two messages and one commit instead of five; whatever is out of the ordinary is left to the locked
//! transaction of [`crate::append`].

use std::collections::BTreeMap;

use kefu_core::SessionId;
use kefu_entities::message::{Entity, Model};
use kefu_entities::session;
use kefu_messaging::{AppendOutcome, AppendRequest, AppendTarget, AppendVerdict, Asked, Draft};
use kefu_session::Session;

use crate::append::{Append, Tips, named};
use crate::bulk::{Bulk, Guard};
use crate::error::Failure;
use crate::open::Database;
use crate::outbox::add_events;
use crate::rows::{self, query};
use crate::session::raw;

/// As the lock of the locked transaction, without locking.
const SESSIONS: &str = "SELECT * FROM cg_chat_session \
     WHERE id = ANY($1) OR (user_id = ANY($2) AND status IN (0, 1))";

/// What became of a batch.
pub(crate) enum Guarded {
    /// It is stored.
    Stored(AppendVerdict),
    /// Nothing was written: a session changed meanwhile or is locked, a key was used before, a request
    /// is refused, an image is shown.
    Left,
}

impl Database {
    /// Appends the batch if nothing is out of the ordinary.
    ///
    /// The statement locks the sessions first and waits for no lock. What it finds unchanged stays so
    /// until it commits; and an unchanged version means that no message came since the read (T1), so
    /// that the statement, whose view is younger, sees every earlier message under the batch's keys
    /// (T2).
    ///
    /// # Errors
    /// After a lost answer the batch may be repeated at once: a statement that is late then finds its
    /// sessions locked or changed and writes nothing, and one that was through is found by its keys.
    pub(crate) async fn append_guarded(&self, append: &Append<'_>) -> Result<Guarded, Failure> {
        // Without prepared statements two messages are not enough.
        if !self.prepares() || append.batch.iter().any(shows_image) {
            return Ok(Guarded::Left);
        }
        // Noted before any id is made (T3).
        let lease = self.worker.held();
        let asked = Asked::by(append.batch);
        let (ids, users) = named(&asked);
        let read = query(SESSIONS).bind(raw(&ids)).bind(users);
        let mut connection = self.autocommit().await?;
        let read = rows::read::<session::Entity, Session>(&mut connection, read).await;
        let sessions = match read {
            Ok(sessions) => sessions,
            Err(failure) if failure.is_transient() => return Ok(Guarded::Left),
            Err(failure) => return Err(failure),
        };
        // What was stored under the keys is left out: the statement writes nothing if there is any.
        let snapshot = asked.found(sessions, Vec::new(), Vec::new());
        let verdict = append.decide(&snapshot);
        if verdict.tips.is_empty() || !verdict.outcomes.iter().all(is_stored) {
            return Ok(Guarded::Left);
        }
        let mut bulk = Bulk::guarded();
        let tips = Tips::bind(&mut bulk, &verdict.tips)?;
        let guard = guard(&mut bulk, append.batch, &snapshot.sessions, &verdict, &tips)?;
        let models: Vec<_> =
            verdict.messages.iter().map(|message| Model::from(message.as_ref())).collect();
        bulk.insert::<Entity>(&models)?;
        tips.update(&mut bulk);
        add_events(&mut bulk, &verdict.events)?;
        match bulk.run_alone(&mut connection, lease, &guard).await {
            Ok(true) => Ok(Guarded::Stored(verdict)),
            Ok(false) => Ok(Guarded::Left),
            // The server said no and wrote nothing: the locked transaction finds out why.
            Err(failure) if failure.is_rolled_back() => Ok(Guarded::Left),
            Err(failure) => Err(failure),
        }
    }
}

fn shows_image(request: &AppendRequest) -> bool {
    matches!(request.draft, Draft::Image(_))
}

fn is_stored(outcome: &AppendOutcome) -> bool {
    matches!(outcome, AppendOutcome::Stored(_))
}

/// The common table expressions that end in the condition: every session still has the version that
/// was read, and nothing is stored under the keys.
fn guard(
    bulk: &mut Bulk,
    batch: &[AppendRequest],
    sessions: &BTreeMap<SessionId, Session>,
    verdict: &AppendVerdict,
    tips: &Tips,
) -> Result<Guard, Failure> {
    let was = verdict.tips.iter().map(|tip| sessions.get(&tip.session_id).map(|s| s.version));
    let was = bulk.bind(was.collect::<Vec<_>>())?;
    let kinds = bulk.bind(batch.iter().map(|r| r.sender.kind()).collect::<Vec<_>>())?;
    let senders = bulk.bind(batch.iter().map(|r| r.sender.id()).collect::<Vec<_>>())?;
    let keys = bulk.bind(batch.iter().map(|r| r.client_msg_id.as_str()).collect::<Vec<_>>())?;
    let named = bulk.bind(batch.iter().map(named_session).collect::<Vec<_>>())?;
    let ids = &tips.id;
    Ok(Guard {
        with: format!(
            "locked AS (SELECT s.id FROM UNNEST({ids}::bigint[], {was}::bigint[]) AS n(id, was) \
                 JOIN cg_chat_session AS s ON s.id = n.id WHERE s.version = n.was \
                 FOR NO KEY UPDATE OF s SKIP LOCKED)"
        ),
        condition: format!(
            "(SELECT count(*) FROM locked) = cardinality({ids}::bigint[]) \
             AND NOT EXISTS (SELECT 1 \
                 FROM UNNEST({kinds}::text[], {senders}::text[], {keys}::text[], \
                     {named}::bigint[]) AS k(t, s, c, named) \
                 JOIN cg_chat_message AS m \
                   ON m.sender_type = k.t AND m.sender_id = k.s AND m.client_msg_id = k.c \
                 WHERE k.named IS NULL OR m.session_id = k.named)"
        ),
    })
}

/// A repeat counts within the named session, else over all of the sender's (T2).
fn named_session(request: &AppendRequest) -> Option<i64> {
    match &request.target {
        AppendTarget::Session(id) => Some(id.get()),
        AppendTarget::OpenSessionOf(_) => None,
    }
}
