//! The contract of `BlobStore`, on memory and on a real folder.

use std::sync::Arc;

use bytes::Bytes;
use kefu_core::Timestamp;
use kefu_upload::{BlobError, BlobStore, ImageFormat, ObjectBlobStore, UploadPath};
use object_store::memory::InMemory;

const DAY: i64 = 86_400_000;

fn path(day: i64, name: u128) -> UploadPath {
    UploadPath::with_name(Timestamp(20_000 * DAY + day * DAY), name, ImageFormat::Png)
}

async fn keeps_the_contract(store: &dyn BlobStore) {
    assert_eq!(store.list(None, 10).await.unwrap(), []);
    assert_eq!(store.find(&path(0, 1)).await.unwrap(), None);
    store.delete(&path(0, 1)).await.unwrap();

    let paths = [path(0, 1), path(0, 2), path(1, 0), path(31, 5)];
    for (path, bytes) in paths.iter().rev().zip(["d", "c", "b", "a"]) {
        store.put(path, Bytes::from(bytes)).await.unwrap();
    }
    assert_eq!(store.find(&paths[0]).await.unwrap(), Some(Bytes::from("a")));
    store.put(&paths[0], Bytes::from("again")).await.unwrap();
    assert_eq!(store.find(&paths[0]).await.unwrap(), Some(Bytes::from("again")));

    let list = async |after: Option<&UploadPath>, limit| {
        let page = store.list(after, limit).await.unwrap();
        assert!(page.iter().all(|entry| entry.stored_at > Timestamp(0)));
        page.into_iter().map(|entry| entry.path).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, paths);
    assert_eq!(list(None, 3).await, paths[..3]);
    assert_eq!(list(Some(&paths[0]), 2).await, paths[1..3]);
    assert_eq!(list(Some(&paths[2]), 10).await, paths[3..]);
    assert_eq!(list(Some(&paths[3]), 10).await, []);

    store.delete(&paths[1]).await.unwrap();
    assert_eq!(store.find(&paths[1]).await.unwrap(), None);
    assert_eq!(list(None, 10).await, [paths[0], paths[2], paths[3]]);
}

#[tokio::test]
async fn memory() {
    keeps_the_contract(&ObjectBlobStore::new(Arc::new(InMemory::new()), "")).await;
    keeps_the_contract(&ObjectBlobStore::new(Arc::new(InMemory::new()), "uploads/chat")).await;
}

#[tokio::test]
async fn folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("public/uploads/chat");
    keeps_the_contract(&ObjectBlobStore::local(&root).unwrap()).await;
    let file = root.join(path(1, 0).day()).join(path(1, 0).file_name());
    assert!(file.is_file(), "day folder and name are those of the URL");
    skips_foreign_files(&root).await;
}

async fn skips_foreign_files(root: &std::path::Path) {
    let before = ObjectBlobStore::local(root).unwrap().list(None, 10).await.unwrap();
    std::fs::create_dir_all(root.join("20260128/sub")).unwrap();
    std::fs::write(root.join("README"), "x").unwrap();
    std::fs::write(root.join("20260128/notes.png"), "x").unwrap();
    std::fs::write(root.join("20260128/sub").join(path(0, 9).file_name()), "x").unwrap();
    let after = ObjectBlobStore::local(root).unwrap().list(None, 10).await.unwrap();
    assert_eq!(after, before);
}

/// A plain file where the folder should be: unusable for every user, root included.
#[tokio::test]
async fn an_unwritable_folder_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let store = ObjectBlobStore::local(folder.path()).unwrap();
    std::fs::write(folder.path().join(path(0, 1).day()), "in the way").unwrap();
    let refused = store.put(&path(0, 1), Bytes::from("x")).await;
    assert!(matches!(refused, Err(BlobError::Unavailable(_))), "{refused:?}");

    let refused = ObjectBlobStore::local(&folder.path().join(path(0, 1).day()));
    assert!(matches!(refused, Err(BlobError::Unavailable(_))), "{refused:?}");
}
