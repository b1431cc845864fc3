//! [`UploadLedger`].

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{StoreFault, Timestamp};
use kefu_entities::upload::{Entity, Model};
use kefu_upload::{UploadLedger, UploadPath, UploadRow};

use crate::error::Failure;
use crate::open::Database;
use crate::outbox::Execute;
use crate::rows::{self, query};
use crate::transaction::{Outcome, Rows as _, Transaction, Work};

const BY_PATH: &str = "SELECT * FROM cg_chat_upload WHERE path = $1";
const INSERT: &str = "INSERT INTO cg_chat_upload \
     (path, session_id, uploader, mime, size, sha256, width, height, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (path) DO NOTHING";
const ORPHANS: &str = "SELECT * FROM cg_chat_upload AS u WHERE u.created_at < $1 AND NOT EXISTS ( \
     SELECT 1 FROM cg_chat_message AS m WHERE m.msg_type = 'image' AND m.content = u.path) \
     ORDER BY u.created_at, u.path LIMIT $2";
/// An append that shows the image holds the row shared until its end, so that one of both comes first.
const LOCK: &str = "SELECT * FROM cg_chat_upload WHERE path = $1 FOR UPDATE";
/// Reads what was committed before the lock was taken, which the statement that takes it does not.
const FORGET: &str = "DELETE FROM cg_chat_upload WHERE path = $1 AND created_at < $2 AND NOT EXISTS ( \
     SELECT 1 FROM cg_chat_message AS m WHERE m.msg_type = 'image' AND m.content = $1)";

/// Uploads in PostgreSQL.
pub(crate) struct PgUploadLedger(pub(crate) Arc<Database>);

impl fmt::Debug for PgUploadLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgUploadLedger").finish_non_exhaustive()
    }
}

#[async_trait]
impl UploadLedger for PgUploadLedger {
    async fn record(&self, row: &UploadRow) -> Result<(), StoreFault> {
        let model = Model::from(row);
        let insert = || {
            query(INSERT)
                .bind(model.path.clone())
                .bind(model.session_id)
                .bind(model.uploader.clone())
                .bind(model.mime.clone())
                .bind(model.size)
                .bind(model.sha256.clone())
                .bind(model.width)
                .bind(model.height)
                .bind(model.created_at)
        };
        self.0.transact("upload_record", &Execute(&insert)).await?;
        Ok(())
    }

    async fn find(&self, path: &UploadPath) -> Result<Option<UploadRow>, StoreFault> {
        let find = query(BY_PATH).bind(path.to_string());
        Ok(rows::committed::<Entity, _>(&self.0, find).await?.pop())
    }

    async fn list_orphans(
        &self,
        created_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadPath>, StoreFault> {
        let list = query(ORPHANS).bind(created_before.0).bind(i64::from(limit));
        let rows: Vec<UploadRow> = rows::committed::<Entity, _>(&self.0, list).await?;
        Ok(rows.into_iter().map(|row| row.path).collect())
    }

    async fn forget(
        &self,
        path: &UploadPath,
        created_before: Timestamp,
    ) -> Result<bool, StoreFault> {
        self.0.transact("upload_forget", &Forget { path, created_before }).await
    }
}

struct Forget<'a> {
    path: &'a UploadPath,
    created_before: Timestamp,
}

impl Work for Forget<'_> {
    type Output = bool;

    async fn run(&self, transaction: &mut Transaction) -> Result<Outcome<bool>, Failure> {
        let path = self.path.to_string();
        if transaction.query(query(LOCK).bind(path.as_str())).await?.is_empty() {
            return Ok(Outcome::Leave(true));
        }
        let forget = query(FORGET).bind(path.as_str()).bind(self.created_before.0);
        match transaction.execute(forget).await? {
            0 => Ok(Outcome::Leave(false)),
            _ => Ok(Outcome::Commit(true)),
        }
    }
}
