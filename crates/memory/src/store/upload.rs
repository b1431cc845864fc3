//! [`UploadLedger`].

use async_trait::async_trait;
use kefu_core::{StoreFault, Timestamp};
use kefu_upload::{UploadLedger, UploadPath, UploadRow};

use crate::MemoryWorld;

#[async_trait]
impl UploadLedger for MemoryWorld {
    async fn record(&self, row: &UploadRow) -> Result<(), StoreFault> {
        self.begin().await.uploads.record(row.clone());
        Ok(())
    }

    async fn find(&self, path: &UploadPath) -> Result<Option<UploadRow>, StoreFault> {
        Ok(self.begin().await.uploads.find(path).cloned())
    }

    async fn list_orphans(
        &self,
        created_before: Timestamp,
        limit: u32,
    ) -> Result<Vec<UploadPath>, StoreFault> {
        Ok(self.begin().await.uploads.orphans(created_before).take(limit as usize).collect())
    }

    async fn forget(
        &self,
        path: &UploadPath,
        created_before: Timestamp,
    ) -> Result<bool, StoreFault> {
        Ok(self.begin().await.uploads.forget(path, created_before))
    }
}
