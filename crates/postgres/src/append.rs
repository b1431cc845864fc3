//! A batch of sends that [`crate::guarded`] leaves, as one transaction of five messages, whatever its
//! size: begin with its limits, lock the sessions, read what was stored under the keys, write, commit;
//! a sixth when images are shown.

use std::collections::BTreeSet;

use kefu_core::{IdSource, SessionId, UserId};
use kefu_entities::message::{Entity, Model};
use kefu_entities::{session, upload};
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendTarget, AppendVerdict, Draft, Tip,
};
use kefu_session::{Session, Status};
use kefu_upload::{UploadPath, UploadRow};

use crate::bulk::Bulk;
use crate::error::Failure;
use crate::outbox::add_events;
use crate::rows::{self, query};
use crate::session::{lock, raw};
use crate::transaction::{Outcome, Transaction, Work};

/// Named sessions and open sessions of named users, all locked in id order. A session that ended
/// while this waited for it is looked at again, so it counts as open no more.
const LOCK: &str = "SELECT * FROM cg_chat_session \
     WHERE id = ANY($1) OR (user_id = ANY($2) AND status IN (0, 1)) \
     ORDER BY id FOR NO KEY UPDATE";
/// A statement of its own after the locks: READ COMMITTED takes its snapshot per statement, and what
/// was committed while the locks were waited for must be seen (T2).
const BY_KEYS: &str = "SELECT m.* FROM UNNEST($1::text[], $2::text[], $3::text[]) AS k(t, s, c) \
     JOIN cg_chat_message AS m \
       ON m.sender_type = k.t AND m.sender_id = k.s AND m.client_msg_id = k.c";
/// Held until the commit, so that what a message shows is not forgotten meanwhile (U1).
const UPLOADS: &str = "SELECT * FROM cg_chat_upload WHERE path = ANY($1) ORDER BY path \
     FOR KEY SHARE";

pub(crate) struct Append<'a> {
    pub(crate) batch: &'a [AppendRequest],
    pub(crate) decide: AppendDecision<'a>,
    pub(crate) ids: &'a dyn IdSource,
}

impl Work for Append<'_> {
    type Output = AppendVerdict;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<AppendVerdict>, Failure> {
        if self.batch.is_empty() {
            return Ok(Outcome::Leave(self.decide(&AppendSnapshot::default())));
        }
        let snapshot = snapshot(transaction, self.batch).await?;
        let verdict = self.decide(&snapshot);
        if verdict.messages.is_empty() && verdict.tips.is_empty() && verdict.events.is_empty() {
            return Ok(Outcome::Leave(verdict));
        }
        let models: Vec<_> =
            verdict.messages.iter().map(|message| Model::from(message.as_ref())).collect();
        let mut bulk = Bulk::default();
        bulk.insert::<Entity>(&models)?;
        Tips::bind(&mut bulk, &verdict.tips)?.update(&mut bulk);
        add_events(&mut bulk, &verdict.events)?;
        bulk.run(transaction).await?;
        Ok(Outcome::Commit(verdict))
    }
}

impl Append<'_> {
    pub(crate) fn decide(&self, snapshot: &AppendSnapshot) -> AppendVerdict {
        (self.decide)(snapshot, self.batch, self.ids)
    }
}

/// Everything that some request of the batch asks for, each once.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    sessions: BTreeSet<SessionId>,
    users: BTreeSet<&'a UserId>,
    keys: BTreeSet<(&'a str, &'a str, &'a str)>,
    uploads: BTreeSet<UploadPath>,
}

impl<'a> Asked<'a> {
    pub(crate) fn by(batch: &'a [AppendRequest]) -> Self {
        let mut asked = Self::default();
        for request in batch {
            match &request.target {
                AppendTarget::Session(id) => asked.sessions.insert(*id),
                AppendTarget::OpenSessionOf(user) => asked.users.insert(user),
            };
            let sender = &request.sender;
            asked.keys.insert((sender.kind(), sender.id(), request.client_msg_id.as_str()));
            if let Draft::Image(path) = &request.draft {
                asked.uploads.insert(*path);
            }
        }
        asked
    }

    pub(crate) fn session_ids(&self) -> Vec<SessionId> {
        self.sessions.iter().copied().collect()
    }

    pub(crate) fn user_ids(&self) -> Vec<&str> {
        self.users.iter().map(|user| user.as_str()).collect()
    }

    /// The sessions that were read for it.
    pub(crate) fn add_sessions(&self, snapshot: &mut AppendSnapshot, sessions: Vec<Session>) {
        for session in sessions {
            let is_open = session.status != Status::Ended;
            if is_open && self.users.contains(&session.user.user_id) {
                snapshot.open.insert(session.user.user_id.clone(), session.id);
            }
            snapshot.sessions.insert(session.id, session);
        }
    }
}

async fn snapshot(
    transaction: &mut Transaction,
    batch: &[AppendRequest],
) -> Result<AppendSnapshot, Failure> {
    let asked = Asked::by(batch);
    let mut snapshot = AppendSnapshot::default();
    asked.add_sessions(&mut snapshot, sessions(transaction, &asked).await?);
    let mut keys = (Vec::new(), Vec::new(), Vec::new());
    for (kind, id, key) in &asked.keys {
        keys.0.push(*kind);
        keys.1.push(*id);
        keys.2.push(*key);
    }
    let by_keys = query(BY_KEYS).bind(keys.0).bind(keys.1).bind(keys.2);
    snapshot.stored = rows::locked::<Entity, _>(transaction, by_keys).await?;
    if !asked.uploads.is_empty() {
        let paths: Vec<_> = asked.uploads.iter().map(ToString::to_string).collect();
        let uploads = query(UPLOADS).bind(paths);
        let uploads: Vec<UploadRow> =
            rows::locked::<upload::Entity, _>(transaction, uploads).await?;
        snapshot.uploads.extend(uploads.into_iter().map(|row| (row.path, row.session_id)));
    }
    Ok(snapshot)
}

async fn sessions(
    transaction: &mut Transaction,
    asked: &Asked<'_>,
) -> Result<Vec<Session>, Failure> {
    let ids = asked.session_ids();
    if asked.users.is_empty() {
        return lock(transaction, &ids).await;
    }
    let lock = query(LOCK).bind(raw(&ids)).bind(asked.user_ids());
    rows::locked::<session::Entity, _>(transaction, lock).await
}

/// The new tips as parameters of a statement.
pub(crate) struct Tips {
    pub(crate) id: String,
    last_seq: String,
    last_msg_id: String,
    version: String,
    rows: usize,
}

impl Tips {
    pub(crate) fn bind(bulk: &mut Bulk, tips: &[Tip]) -> Result<Self, Failure> {
        let column = |value: fn(&Tip) -> i64| tips.iter().map(value).collect::<Vec<_>>();
        Ok(Self {
            id: bulk.bind(column(|tip| tip.session_id.get()))?,
            last_seq: bulk.bind(column(|tip| tip.last_seq.0))?,
            last_msg_id: bulk.bind(column(|tip| tip.last_msg_id.get()))?,
            version: bulk.bind(column(|tip| tip.version))?,
            rows: tips.len(),
        })
    }

    pub(crate) fn update(&self, bulk: &mut Bulk) {
        let Self { id, last_seq, last_msg_id, version, rows } = self;
        let sql = format!(
            "UPDATE cg_chat_session AS t \
             SET last_seq = n.last_seq, last_msg_id = n.last_msg_id, version = n.version \
             FROM UNNEST({id}, {last_seq}, {last_msg_id}, {version}) \
                 AS n(id, last_seq, last_msg_id, version) WHERE t.id = n.id{}",
            bulk.only_if("AND")
        );
        bulk.add(sql, *rows, Failure::Forbidden("the tip of an unknown session is written"));
    }
}
