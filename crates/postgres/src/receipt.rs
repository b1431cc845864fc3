//! A batch of receipts as one transaction of at most five messages, whatever its size.

use std::collections::BTreeSet;

use kefu_core::MsgId;
use kefu_entities::{message, session};
use kefu_messaging::{
    Message, ReceiptDecision, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict, StatusChange,
};
use kefu_session::Session;

use crate::error::Failure;
use crate::rows::{self, query};
use crate::transaction::{Outcome, Transaction, Work};

/// A message never changes its session, so this may be looked up before the lock.
const LOCK: &str = "SELECT * FROM cg_chat_session \
     WHERE id IN (SELECT session_id FROM cg_chat_message WHERE msg_id = ANY($1)) \
     ORDER BY id FOR NO KEY UPDATE";
/// The named messages, and for each of the second list the earlier ones of its side that are not read.
const MESSAGES: &str = "SELECT * FROM cg_chat_message WHERE msg_id = ANY($1) \
     UNION \
     SELECT m.* FROM cg_chat_message AS n JOIN cg_chat_message AS m \
       ON m.session_id = n.session_id AND m.seq < n.seq \
     WHERE n.msg_id = ANY($2) AND m.status <> 'read' \
       AND (m.sender_type = 'user') = (n.sender_type = 'user')";
/// A status only goes forward, whatever the decision was told (M3).
const PUT_STATUSES: &str = "UPDATE cg_chat_message AS t SET status = n.status \
     FROM UNNEST($1::bigint[], $2::text[]) AS n(msg_id, status) WHERE t.msg_id = n.msg_id \
       AND CASE n.status \
           WHEN 'read' THEN t.status <> 'read' \
           WHEN 'delivered' THEN t.status IN ('pending', 'failed') \
           WHEN 'failed' THEN t.status = 'pending' \
           ELSE false END";

pub(crate) struct Record<'a> {
    pub(crate) batch: &'a [ReceiptRequest],
    pub(crate) decide: ReceiptDecision<'a>,
}

impl Work for Record<'_> {
    type Output = ReceiptVerdict;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<ReceiptVerdict>, Failure> {
        let snapshot = snapshot(transaction, self.batch).await?;
        let verdict = (self.decide)(&snapshot, self.batch);
        if verdict.changes.is_empty() {
            return Ok(Outcome::Leave(verdict));
        }
        let id = |change: &StatusChange| change.message.msg_id.get();
        let status = |change: &StatusChange| change.message.status.as_str();
        let put = query(PUT_STATUSES)
            .bind(verdict.changes.iter().map(id).collect::<Vec<_>>())
            .bind(verdict.changes.iter().map(status).collect::<Vec<_>>());
        if transaction.execute(put).await? == verdict.changes.len() as u64 {
            Ok(Outcome::Commit(verdict))
        } else {
            Err(Failure::Forbidden("a status goes back or belongs to no message"))
        }
    }
}

async fn snapshot(
    transaction: &mut Transaction,
    batch: &[ReceiptRequest],
) -> Result<ReceiptSnapshot, Failure> {
    let mut snapshot = ReceiptSnapshot::default();
    let named = raw(batch.iter());
    if named.is_empty() {
        return Ok(snapshot);
    }
    let lock = query(LOCK).bind(named.clone());
    let sessions: Vec<Session> = rows::locked::<session::Entity, _>(transaction, lock).await?;
    snapshot.sessions.extend(sessions.into_iter().map(|session| (session.id, session)));
    let cumulative = raw(batch.iter().filter(|request| request.cumulative));
    let read = query(MESSAGES).bind(named).bind(cumulative);
    let messages: Vec<Message> = rows::locked::<message::Entity, _>(transaction, read).await?;
    snapshot.messages.extend(messages.into_iter().map(|message| (message.msg_id, message)));
    Ok(snapshot)
}

/// The messages of some requests, each once.
fn raw<'a>(requests: impl Iterator<Item = &'a ReceiptRequest>) -> Vec<i64> {
    let named: BTreeSet<MsgId> = requests.map(|request| request.msg_id).collect();
    named.into_iter().map(MsgId::get).collect()
}
