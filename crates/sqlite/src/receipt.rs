//! A batch of receipts as one transaction of at most five statements.

use std::collections::BTreeSet;

use kefu_core::MsgId;
use kefu_entities::message::Entity;
use kefu_messaging::{
    Message, MessageStatus, ReceiptDecision, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict,
    StatusChange,
};
use sea_orm::DatabaseTransaction;

use crate::error::Failure;
use crate::rows;
use crate::session::locked;
use crate::writer::{Outcome, Work};

const NAMED: &str =
    "SELECT * FROM cg_chat_message WHERE msg_id IN (SELECT value FROM json_each(?1))";
/// For each named message the earlier ones of its side that are not read: what a partial index holds.
const UNREAD: &str = "SELECT m.* FROM json_each(?1) AS j \
     CROSS JOIN cg_chat_message AS n CROSS JOIN cg_chat_message AS m \
     WHERE n.msg_id = j.value AND m.session_id = n.session_id AND m.seq < n.seq \
       AND m.status <> 'read' AND (m.sender_type = 'user') = (n.sender_type = 'user')";
/// The same for those that no device has.
const UNDELIVERED: &str = "SELECT m.* FROM json_each(?1) AS j \
     CROSS JOIN cg_chat_message AS n CROSS JOIN cg_chat_message AS m \
     WHERE n.msg_id = j.value AND m.session_id = n.session_id AND m.seq < n.seq \
       AND m.status IN ('pending', 'failed') \
       AND (m.sender_type = 'user') = (n.sender_type = 'user')";
/// A status only goes forward, whatever the decision was told (M3).
const PUT_STATUSES: &str = "UPDATE cg_chat_message SET status = j.value ->> 1 \
     FROM json_each(?1) AS j WHERE cg_chat_message.msg_id = j.value ->> 0 \
       AND CASE j.value ->> 1 \
           WHEN 'read' THEN cg_chat_message.status <> 'read' \
           WHEN 'delivered' THEN cg_chat_message.status IN ('pending', 'failed') \
           WHEN 'failed' THEN cg_chat_message.status = 'pending' \
           ELSE 0 END";

pub(crate) struct Record<'a> {
    pub(crate) batch: &'a [ReceiptRequest],
    pub(crate) decide: ReceiptDecision<'a>,
}

impl Work for Record<'_> {
    type Output = ReceiptVerdict;

    async fn run(
        &self,
        transaction: &DatabaseTransaction,
    ) -> Result<Outcome<ReceiptVerdict>, Failure> {
        let snapshot = snapshot(transaction, self.batch).await?;
        let verdict = (self.decide)(&snapshot, self.batch);
        if verdict.changes.is_empty() {
            return Ok(Outcome::Leave(verdict));
        }
        let statuses: Vec<_> = verdict.changes.iter().map(status_row).collect();
        let written = rows::write(transaction, PUT_STATUSES, &statuses).await?;
        if written == statuses.len() as u64 {
            Ok(Outcome::Commit(verdict))
        } else {
            Err(Failure::Forbidden("a status goes back or belongs to no message"))
        }
    }
}

const fn status_row(change: &StatusChange) -> (MsgId, &'static str) {
    (change.message.msg_id, change.message.status.as_str())
}

async fn snapshot(
    transaction: &DatabaseTransaction,
    batch: &[ReceiptRequest],
) -> Result<ReceiptSnapshot, Failure> {
    let mut snapshot = ReceiptSnapshot::default();
    let named = batch.iter().map(|request| request.msg_id);
    keep(&mut snapshot, messages(transaction, NAMED, named).await?);
    let (unread, undelivered): (Vec<_>, Vec<_>) = batch
        .iter()
        .filter(|request| request.covers_earlier(MessageStatus::Pending))
        .partition(|request| request.covers_earlier(MessageStatus::Delivered));
    for (sql, cumulative) in [(UNREAD, unread), (UNDELIVERED, undelivered)] {
        if !cumulative.is_empty() {
            let named = cumulative.into_iter().map(|request| request.msg_id);
            keep(&mut snapshot, messages(transaction, sql, named).await?);
        }
    }
    let sessions: BTreeSet<_> = snapshot.messages.values().map(|m| m.session_id).collect();
    let sessions: Vec<_> = sessions.into_iter().collect();
    if !sessions.is_empty() {
        let found = locked(transaction, &sessions).await?;
        snapshot.sessions.extend(found.into_iter().map(|session| (session.id, session)));
    }
    Ok(snapshot)
}

async fn messages(
    transaction: &DatabaseTransaction,
    sql: &str,
    named: impl Iterator<Item = MsgId> + Send,
) -> Result<Vec<Message>, Failure> {
    let named: BTreeSet<MsgId> = named.collect();
    let named: Vec<_> = named.into_iter().collect();
    rows::locked::<Entity, _>(transaction, sql, [rows::json(&named)?]).await
}

fn keep(snapshot: &mut ReceiptSnapshot, messages: Vec<Message>) {
    snapshot.messages.extend(messages.into_iter().map(|message| (message.msg_id, message)));
}
