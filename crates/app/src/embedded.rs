//! The embedded profile: SQLite and this process's memory behind the ports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kefu_core::{Clock, SnowflakeIds, WorkerId};
use kefu_memory::MemoryCoordination;
use kefu_sqlite::{SqliteOptions, SqliteStore};

use crate::config::Config;
use crate::ground::{Ground, Storage};
use crate::readiness::StoreReadiness;

/// Opens the database in `data_dir`.
pub(crate) async fn open(config: &Config, clock: &Arc<dyn Clock>) -> Result<Ground> {
    let path = database_path(&config.data_dir);
    let store = SqliteStore::open(&path, SqliteOptions::default())
        .await
        .with_context(|| format!("cannot open {}", path.display()))?;
    let stores = store.stores();
    let highest = stores.messages.highest_id().await.context("cannot read the database")?;
    Ok(Ground {
        ready: Arc::new(StoreReadiness { messages: Arc::clone(&stores.messages) }),
        stores,
        coordination: MemoryCoordination::new(Arc::clone(clock)).ports(),
        cluster: None,
        ids: Arc::new(SnowflakeIds::new(Arc::clone(clock), WorkerId::default(), highest)),
        storage: Storage::Embedded(store),
    })
}

/// Makes the data folder if it is missing.
pub(crate) fn make_data_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path)
        .with_context(|| format!("data_dir: cannot make the folder {}", path.display()))
}

/// Where the embedded database lies.
pub(crate) fn database_path(data_dir: &Path) -> PathBuf {
    data_dir.join("kefu.db")
}
