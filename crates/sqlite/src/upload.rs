//! [`UploadLedger`].

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use kefu_core::{StoreFault, Timestamp};
use kefu_entities::upload::{Entity, Model};
use kefu_upload::{UploadLedger, UploadPath, UploadRow};
use sea_orm::{ConnectionTrait, DatabaseTransaction};

use crate::error::Failure;
use crate::open::Database;
use crate::rows;
use crate::writer::{Outcome, Work};

const BY_PATH: &str = "SELECT * FROM cg_chat_upload WHERE path = ?1";
const INSERT: &str = "INSERT INTO cg_chat_upload \
     (path, session_id, uploader, mime, size, sha256, width, height, created_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (path) DO NOTHING";
const ORPHANS: &str = "SELECT * FROM cg_chat_upload AS u WHERE u.created_at < ?1 AND NOT EXISTS ( \
     SELECT 1 FROM cg_chat_message AS m WHERE m.msg_type = 'image' AND m.content = u.path) \
     ORDER BY u.created_at, u.path LIMIT ?2";
const FORGET: &str = "DELETE FROM cg_chat_upload WHERE path = ?1 AND created_at < ?2 AND NOT EXISTS ( \
     SELECT 1 FROM cg_chat_message AS m WHERE m.msg_type = 'image' AND m.content = ?1)";

/// Uploads in SQLite.
pub(crate) struct SqliteUploadLedger(pub(crate) Arc<Database>);

impl fmt::Debug for SqliteUploadLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteUploadLedger").finish_non_exhaustive()
    }
}

#[async_trait]
impl UploadLedger for SqliteUploadLedger {
    async fn record(&self, row: &UploadRow) -> Result<(), StoreFault> {
        self.0.writer.transact("upload_record", &Insert { row }).await
    }

    async fn find(&self, path: &UploadPath) -> Result<Option<UploadRow>, StoreFault> {
        let path = path.to_string().into();
        Ok(rows::committed::<Entity, _>(&self.0.readers, BY_PATH, [path]).await?.pop())
    }

    async fn list_orphans(
        &self,
        created_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadPath>, StoreFault> {
        let values = [created_before.0.into(), limit.into()];
        let rows: Vec<UploadRow> =
            rows::committed::<Entity, _>(&self.0.readers, ORPHANS, values).await?;
        Ok(rows.into_iter().map(|row| row.path).collect())
    }

    async fn forget(
        &self,
        path: &UploadPath,
        created_before: Timestamp,
    ) -> Result<bool, StoreFault> {
        self.0.writer.transact("upload_forget", &Forget { path, created_before }).await
    }
}

struct Insert<'a> {
    row: &'a UploadRow,
}

impl Work for Insert<'_> {
    type Output = ();

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<()>, Failure> {
        let model = Model::from(self.row);
        let values = [
            model.path.into(),
            model.session_id.into(),
            model.uploader.into(),
            model.mime.into(),
            model.size.into(),
            model.sha256.into(),
            model.width.into(),
            model.height.into(),
            model.created_at.into(),
        ];
        match rows::execute(transaction, INSERT, values).await? {
            0 => Ok(Outcome::Leave(())),
            _ => Ok(Outcome::Commit(())),
        }
    }
}

struct Forget<'a> {
    path: &'a UploadPath,
    created_before: Timestamp,
}

impl Work for Forget<'_> {
    type Output = bool;

    async fn run(&self, transaction: &DatabaseTransaction) -> Result<Outcome<bool>, Failure> {
        let path = self.path.to_string();
        let values = [path.clone().into(), self.created_before.0.into()];
        if rows::execute(transaction, FORGET, values).await? > 0 {
            return Ok(Outcome::Commit(true));
        }
        let kept = transaction.query_one_raw(rows::statement(BY_PATH, [path.into()])).await?;
        Ok(Outcome::Leave(kept.is_none()))
    }
}
