//! The contracts of the SQL ports, stamped on SQLite.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use async_trait::async_trait;
use kefu_desk::Stores;
use kefu_sqlite::{SqliteOptions, SqliteStore};
use kefu_testkit::Harness;
use tempfile::TempDir;

struct SqliteFile {
    folder: TempDir,
    store: SqliteStore,
}

async fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(&folder.path().join("kefu.db"), SqliteOptions::default())
        .await
        .expect("the file opens")
}

#[async_trait]
impl Harness for SqliteFile {
    async fn start() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let store = open(&folder).await;
        Self { folder, store }
    }

    fn stores(&self) -> Stores {
        self.store.stores()
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.store = open(&self.folder).await;
    }
}

kefu_testkit::store_contract!(SqliteFile);
