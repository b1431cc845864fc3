//! Images in a folder or in any object store.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use kefu_core::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt as _};

use crate::path::{UploadPath, parse_day};
use crate::store::{BlobEntry, BlobError, BlobStore};

/// A [`BlobStore`] over `object_store`; the key of an image is `<prefix>/YYYYMMDD/<name>`.
#[derive(Debug, Clone)]
pub struct ObjectBlobStore {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
}

impl ObjectBlobStore {
    /// Keeps images in `store`, below `prefix` (empty for the store's root).
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self { store, prefix: Key::from(prefix) }
    }

    /// Keeps images in the day folders of `folder`, which is made if it is missing. Blocks; meant for start-up.
    ///
    /// An image is written beside its place and renamed into it; file and folder are flushed first, because a
    /// message that is acknowledged (A2) must not point to an image that a power cut takes back.
    ///
    /// # Errors
    /// [`BlobError::Unavailable`] when the folder cannot be made or opened.
    pub fn local(folder: &Path) -> Result<Self, BlobError> {
        std::fs::create_dir_all(folder).map_err(|error| BlobError::Unavailable(error.into()))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(translate)?.with_fsync(true);
        Ok(Self::new(Arc::new(store), ""))
    }

    fn key(&self, path: &UploadPath) -> Key {
        self.prefix.clone().join(path.day()).join(path.file_name())
    }

    fn entry(&self, day: &str, object: &ObjectMeta) -> Option<BlobEntry> {
        let path = UploadPath::from_parts(day, object.location.filename()?).ok()?;
        let stored_at = Timestamp(object.last_modified.timestamp_millis());
        (self.key(&path) == object.location).then_some(BlobEntry { path, stored_at })
    }

    /// The day folders from `first` on, in order.
    async fn days(&self, first: &str) -> Result<Vec<String>, BlobError> {
        let listed = self.store.list_with_delimiter(Some(&self.prefix)).await.map_err(translate)?;
        let mut days: Vec<_> = listed
            .common_prefixes
            .iter()
            .filter_map(Key::filename)
            .filter(|day| parse_day(day).is_some() && *day >= first)
            .map(str::to_owned)
            .collect();
        days.sort_unstable();
        Ok(days)
    }

    /// The images of one day behind `after`, in order. Stores list in any order, so one day is held in memory.
    async fn day(
        &self,
        day: &str,
        after: Option<&UploadPath>,
    ) -> Result<Vec<BlobEntry>, BlobError> {
        let folder = self.prefix.clone().join(day);
        let objects = self.store.list(Some(&folder));
        let mut entries: Vec<_> = objects
            .try_filter_map(|object| {
                let entry = self
                    .entry(day, &object)
                    .filter(|entry| after.is_none_or(|after| entry.path > *after));
                std::future::ready(Ok(entry))
            })
            .try_collect()
            .await
            .map_err(translate)?;
        entries.sort_unstable_by_key(|entry| entry.path);
        Ok(entries)
    }
}

#[async_trait]
impl BlobStore for ObjectBlobStore {
    async fn put(&self, path: &UploadPath, bytes: Bytes) -> Result<(), BlobError> {
        self.store.put(&self.key(path), bytes.into()).await.map_err(translate)?;
        Ok(())
    }

    async fn find(&self, path: &UploadPath) -> Result<Option<Bytes>, BlobError> {
        let found = match self.store.get(&self.key(path)).await {
            Ok(object) => object.bytes().await,
            Err(error) => Err(error),
        };
        match found {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(translate(error)),
        }
    }

    async fn delete(&self, path: &UploadPath) -> Result<(), BlobError> {
        match self.store.delete(&self.key(path)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(translate(error)),
        }
    }

    async fn list(
        &self,
        after: Option<&UploadPath>,
        limit: usize,
    ) -> Result<Vec<BlobEntry>, BlobError> {
        let first = after.map(UploadPath::day).unwrap_or_default();
        let mut page = Vec::new();
        for day in self.days(&first).await? {
            if page.len() >= limit {
                break;
            }
            page.extend(self.day(&day, after).await?);
        }
        page.truncate(limit);
        Ok(page)
    }
}

/// Everything that space, permissions or a network can cure is "unavailable".
fn translate(error: Error) -> BlobError {
    match error {
        Error::Generic { .. }
        | Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::NotFound { .. }
        | Error::JoinError { .. } => BlobError::Unavailable(error.into()),
        _ => BlobError::Internal(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_full_disk_is_unavailable() {
        let source = Box::new(io::Error::from(io::ErrorKind::StorageFull));
        let error = translate(Error::Generic { store: "LocalFileSystem", source });
        assert!(matches!(error, BlobError::Unavailable(_)), "{error:?}");
    }
}
