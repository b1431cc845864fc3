//! A batch of sends that [`crate::guarded`] leaves, as one transaction of five messages, whatever its
//! size: begin with its limits, lock the sessions, read what was stored under the keys, write, commit;
//! a sixth when images are shown.

use kefu_core::{IdSource, SessionId};
use kefu_entities::message::{Entity, Model};
use kefu_entities::{session, upload};
use kefu_messaging::{AppendDecision, AppendRequest, AppendSnapshot, AppendVerdict, Asked, Tip};
use kefu_session::Session;
use kefu_upload::UploadRow;

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

async fn snapshot(
    transaction: &mut Transaction,
    batch: &[AppendRequest],
) -> Result<AppendSnapshot, Failure> {
    let asked = Asked::by(batch);
    let sessions = sessions(transaction, &asked).await?;
    let mut keys = (Vec::new(), Vec::new(), Vec::new());
    for (kind, id, key) in &asked.keys {
        keys.0.push(*kind);
        keys.1.push(*id);
        keys.2.push(*key);
    }
    let by_keys = query(BY_KEYS).bind(keys.0).bind(keys.1).bind(keys.2);
    let stored = rows::read::<Entity, _>(transaction, by_keys).await?;
    let mut uploads: Vec<UploadRow> = Vec::new();
    if !asked.uploads.is_empty() {
        let paths: Vec<_> = asked.uploads.iter().map(ToString::to_string).collect();
        let shown = query(UPLOADS).bind(paths);
        uploads = rows::read::<upload::Entity, _>(transaction, shown).await?;
    }
    Ok(asked.found(sessions, stored, uploads))
}

/// Their ids and users as parameters of a statement.
pub(crate) fn named<'a>(asked: &Asked<'a>) -> (Vec<SessionId>, Vec<&'a str>) {
    let users = asked.users.iter().map(|user| user.as_str());
    (asked.sessions.iter().copied().collect(), users.collect())
}

async fn sessions(
    transaction: &mut Transaction,
    asked: &Asked<'_>,
) -> Result<Vec<Session>, Failure> {
    let (ids, users) = named(asked);
    if users.is_empty() {
        return lock(transaction, &ids).await;
    }
    let lock = query(LOCK).bind(raw(&ids)).bind(users);
    rows::read::<session::Entity, _>(transaction, lock).await
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
