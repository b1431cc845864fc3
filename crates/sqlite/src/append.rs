//! A batch of sends as one transaction of at most eight statements, whatever its size.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use kefu_core::{IdSource, UserId};
use kefu_entities::message::{Entity, Model};
use kefu_entities::session;
use kefu_messaging::{
    AppendDecision, AppendRequest, AppendSnapshot, AppendVerdict, Asked, Message, Tip,
};
use kefu_session::Session;
use kefu_upload::{UploadPath, UploadRow};
use sea_orm::DatabaseTransaction;
use serde::Serialize;

use crate::error::Failure;
use crate::outbox::write_events;
use crate::rows;
use crate::session::locked;
use crate::writer::{Outcome, Work};

const OPEN_BY_USERS: &str = "SELECT * FROM cg_chat_session \
     WHERE user_id IN (SELECT value FROM json_each(?1)) AND status IN (0, 1)";
/// CROSS JOIN keeps SQLite from turning the join round: one probe of the key's index per element.
const BY_KEYS: &str = "SELECT m.* FROM json_each(?1) AS j CROSS JOIN cg_chat_message AS m \
     WHERE m.sender_type = j.value ->> 0 AND m.sender_id = j.value ->> 1 \
       AND m.client_msg_id = j.value ->> 2";
const UPLOADS: &str =
    "SELECT * FROM cg_chat_upload WHERE path IN (SELECT value FROM json_each(?1))";
const PUT_TIPS: &str = "UPDATE cg_chat_session \
     SET last_seq = j.value ->> 1, last_msg_id = j.value ->> 2, version = j.value ->> 3 \
     FROM json_each(?1) AS j WHERE cg_chat_session.id = j.value ->> 0";

static INSERT: LazyLock<String> = LazyLock::new(rows::insert_sql::<Entity>);

pub(crate) struct Append<'a> {
    pub(crate) batch: &'a [AppendRequest],
    pub(crate) decide: AppendDecision<'a>,
    pub(crate) ids: &'a dyn IdSource,
}

impl Work for Append<'_> {
    type Output = AppendVerdict;

    async fn run(
        &self,
        transaction: &DatabaseTransaction,
    ) -> Result<Outcome<AppendVerdict>, Failure> {
        let snapshot = snapshot(transaction, self.batch).await?;
        let verdict = (self.decide)(&snapshot, self.batch, self.ids);
        if verdict.messages.is_empty() && verdict.tips.is_empty() && verdict.events.is_empty() {
            return Ok(Outcome::Leave(verdict));
        }
        let messages: Vec<_> =
            verdict.messages.iter().map(|message| Model::from(message.as_ref())).collect();
        rows::write(transaction, &INSERT, &messages).await?;
        put_tips(transaction, &verdict.tips).await?;
        write_events(transaction, &verdict.events).await?;
        Ok(Outcome::Commit(verdict))
    }
}

async fn snapshot(
    transaction: &DatabaseTransaction,
    batch: &[AppendRequest],
) -> Result<AppendSnapshot, Failure> {
    let asked = Asked::by(batch);
    let mut sessions = Vec::new();
    if !asked.sessions.is_empty() {
        sessions = locked(transaction, &listed(&asked.sessions)).await?;
    }
    if !asked.users.is_empty() {
        sessions.extend(open_of(transaction, &listed(&asked.users)).await?);
    }
    let keys = [rows::json(&listed(&asked.keys))?];
    let stored = rows::locked::<Entity, Message>(transaction, BY_KEYS, keys).await?;
    let uploads = match asked.uploads.is_empty() {
        true => Vec::new(),
        false => uploads_at(transaction, &asked.uploads).await?,
    };
    Ok(asked.found(sessions, stored, uploads))
}

async fn open_of(
    transaction: &DatabaseTransaction,
    users: &[&UserId],
) -> Result<Vec<Session>, Failure> {
    rows::locked::<session::Entity, _>(transaction, OPEN_BY_USERS, [rows::json(users)?]).await
}

async fn uploads_at(
    transaction: &DatabaseTransaction,
    paths: &BTreeSet<UploadPath>,
) -> Result<Vec<UploadRow>, Failure> {
    let texts: Vec<_> = paths.iter().map(ToString::to_string).collect();
    let paths = [rows::json(&texts)?];
    rows::locked::<kefu_entities::upload::Entity, _>(transaction, UPLOADS, paths).await
}

async fn put_tips(transaction: &DatabaseTransaction, tips: &[Tip]) -> Result<(), Failure> {
    let rows: Vec<_> = tips.iter().map(tip_row).collect();
    let written = rows::write(transaction, PUT_TIPS, &rows).await?;
    if written == tips.len() as u64 {
        Ok(())
    } else {
        Err(Failure::Forbidden("the tip of an unknown session is written"))
    }
}

const fn tip_row(tip: &Tip) -> impl Serialize + use<> {
    (tip.session_id, tip.last_seq, tip.last_msg_id, tip.version)
}

fn listed<T: Copy>(set: &BTreeSet<T>) -> Vec<T> {
    set.iter().copied().collect()
}
