//! A batch of receipts as three messages, whatever its size: read the messages, read their sessions,
//! write. Nothing needs a transaction around them.

use std::collections::{BTreeSet, HashSet};

use kefu_core::{MsgId, StoreFault};
use kefu_entities::{message, session};
use kefu_messaging::{
    Message, MessageStatus, ReceiptDecision, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict,
    StatusChange,
};
use kefu_session::Session;
use sea_orm::sqlx::postgres::PgRow;

use crate::error::Failure;
use crate::open::Database;
use crate::rows::{self, Query, column, query};
use crate::timer::Timer;
use crate::transaction::{Outcome, Rows, Transaction, Work};

/// The named messages; for each of the second list the earlier ones of its side that are not read; for
/// each of the third those that no device has. Each part is what a partial index holds.
const MESSAGES: &str = "SELECT * FROM cg_chat_message WHERE msg_id = ANY($1) \
     UNION ALL \
     SELECT m.* FROM cg_chat_message AS n JOIN cg_chat_message AS m \
       ON m.session_id = n.session_id AND m.seq < n.seq \
     WHERE n.msg_id = ANY($2) AND m.status <> 'read' \
       AND (m.sender_type = 'user') = (n.sender_type = 'user') \
     UNION ALL \
     SELECT m.* FROM cg_chat_message AS n JOIN cg_chat_message AS m \
       ON m.session_id = n.session_id AND m.seq < n.seq \
     WHERE n.msg_id = ANY($3) AND m.status IN ('pending', 'failed') \
       AND (m.sender_type = 'user') = (n.sender_type = 'user')";
/// Who may report, and who is told. Not locked: a report changes nothing that a session's own rules
/// look at, so it must not wait for sends and they not for it. One that runs beside a transfer counts
/// as before it.
const SESSIONS: &str = "SELECT * FROM cg_chat_session WHERE id = ANY($1)";
/// A status only goes forward, whatever the decision was told (M3).
const PUT_STATUSES: &str = "UPDATE cg_chat_message AS t SET status = n.status \
     FROM UNNEST($1::bigint[], $2::text[]) AS n(msg_id, status) WHERE t.msg_id = n.msg_id \
       AND CASE n.status \
           WHEN 'read' THEN t.status <> 'read' \
           WHEN 'delivered' THEN t.status IN ('pending', 'failed') \
           WHEN 'failed' THEN t.status = 'pending' \
           ELSE false END \
     RETURNING t.msg_id";

pub(crate) struct Record<'a> {
    pub(crate) batch: &'a [ReceiptRequest],
    pub(crate) decide: ReceiptDecision<'a>,
}

impl Database {
    /// Records the batch.
    pub(crate) async fn record(&self, record: &Record<'_>) -> Result<ReceiptVerdict, StoreFault> {
        if !self.prepares() {
            return self.transact("record", record).await;
        }
        let timer = Timer::start();
        let recorded = self.record_alone(record).await;
        timer.record("record");
        match recorded {
            // With the limits and the repetitions of a transaction.
            Err(failure) if failure.is_transient() || failure.is_rolled_back() => {
                self.transact("record", record).await
            }
            recorded => Ok(recorded?),
        }
    }

    async fn record_alone(&self, record: &Record<'_>) -> Result<ReceiptVerdict, Failure> {
        let mut connection = self.autocommit().await?;
        let mut verdict = record.decide(&mut connection).await?;
        if !verdict.changes.is_empty() {
            let written = connection.write(put(&verdict.changes)).await?;
            keep_written(&mut verdict, &written)?;
        }
        Ok(verdict)
    }
}

impl Work for Record<'_> {
    type Output = ReceiptVerdict;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<ReceiptVerdict>, Failure> {
        let mut verdict = self.decide(transaction).await?;
        if verdict.changes.is_empty() {
            return Ok(Outcome::Leave(verdict));
        }
        let written = transaction.query(put(&verdict.changes)).await?;
        keep_written(&mut verdict, &written)?;
        Ok(Outcome::Commit(verdict))
    }
}

impl Record<'_> {
    async fn decide(&self, connection: &mut impl Rows) -> Result<ReceiptVerdict, Failure> {
        let snapshot = snapshot(connection, self.batch).await?;
        let verdict = (self.decide)(&snapshot, self.batch);
        match verdict.changes.iter().all(|change| is_step(&snapshot, change)) {
            true => Ok(verdict),
            false => Err(Failure::Forbidden("a status goes back or belongs to no message")),
        }
    }
}

fn put(changes: &[StatusChange]) -> Query<'static> {
    let id = |change: &StatusChange| change.message.msg_id.get();
    let status = |change: &StatusChange| change.message.status.as_str();
    query(PUT_STATUSES)
        .bind(changes.iter().map(id).collect::<Vec<_>>())
        .bind(changes.iter().map(status).collect::<Vec<_>>())
}

/// Another report may have raised one of them since it was read: then that one tells of it.
fn keep_written(verdict: &mut ReceiptVerdict, written: &[PgRow]) -> Result<(), Failure> {
    let written =
        written.iter().map(|row| column::<i64>(row, 0)).collect::<Result<HashSet<_>, _>>()?;
    verdict.changes.retain(|change| written.contains(&change.message.msg_id.get()));
    Ok(())
}

fn is_step(snapshot: &ReceiptSnapshot, change: &StatusChange) -> bool {
    let known = snapshot.messages.get(&change.message.msg_id);
    known.is_some_and(|known| known.status.may_become(change.message.status))
}

async fn snapshot(
    connection: &mut impl Rows,
    batch: &[ReceiptRequest],
) -> Result<ReceiptSnapshot, Failure> {
    let mut snapshot = ReceiptSnapshot::default();
    let named = raw(batch.iter());
    if named.is_empty() {
        return Ok(snapshot);
    }
    let (unread, undelivered): (Vec<_>, Vec<_>) = batch
        .iter()
        .filter(|request| request.covers_earlier(MessageStatus::Pending))
        .partition(|request| request.covers_earlier(MessageStatus::Delivered));
    let (unread, undelivered) = (raw(unread.into_iter()), raw(undelivered.into_iter()));
    let read = query(MESSAGES).bind(named).bind(unread).bind(undelivered);
    let messages: Vec<Message> = rows::read::<message::Entity, _>(connection, read).await?;
    snapshot.messages.extend(messages.into_iter().map(|message| (message.msg_id, message)));
    let sessions: BTreeSet<_> = snapshot.messages.values().map(|m| m.session_id.get()).collect();
    let read = query(SESSIONS).bind(sessions.into_iter().collect::<Vec<_>>());
    let sessions: Vec<Session> = rows::read::<session::Entity, _>(connection, read).await?;
    snapshot.sessions.extend(sessions.into_iter().map(|session| (session.id, session)));
    Ok(snapshot)
}

/// The messages of some requests, each once.
fn raw<'a>(requests: impl Iterator<Item = &'a ReceiptRequest>) -> Vec<i64> {
    let named: BTreeSet<MsgId> = requests.map(|request| request.msg_id).collect();
    named.into_iter().map(MsgId::get).collect()
}
