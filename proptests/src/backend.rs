//! The backends that every property runs on. A further one is a [`Backend`] here and one line in
//! [`on_every_backend!`](crate::on_every_backend).

pub(crate) mod leases;
pub(crate) mod postgres;
mod sql;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kefu_core::ManualClock;
use kefu_desk::Stores;
use kefu_memory::MemoryWorld;
use kefu_sqlite::{SqliteOptions, SqliteStore};
use kefu_testkit::Harness;
use tempfile::TempDir;

use crate::broken::loosened;
pub use leases::{LeaseBackend, MemoryLeases, RedisLeases};
pub use postgres::Postgres;
pub use sql::Sql;

/// Stamps every named `async fn property<B: Backend>() -> Result<(), Violation>` as one test per
/// backend, on two worker threads.
#[macro_export]
macro_rules! on_every_backend {
    ($($property:ident),+ $(,)?) => {
        $crate::on_backend!(memory, Memory, $($property),+);
        $crate::on_backend!(sqlite, Sqlite, $($property),+);
        $crate::on_backend!(postgres, Postgres, $($property),+);
    };
}

/// As [`on_every_backend!`](crate::on_every_backend), for what is broken in a schema: where there is
/// one.
#[macro_export]
macro_rules! in_every_schema {
    ($($property:ident),+ $(,)?) => {
        $crate::on_backend!(in_sqlite, Sqlite, $($property),+);
        $crate::on_backend!(in_postgres, Postgres, $($property),+);
    };
}

/// As [`on_every_backend!`](crate::on_every_backend), for leases, which are never in SQL (A1).
#[macro_export]
macro_rules! on_every_lease_backend {
    ($($property:ident),+ $(,)?) => {
        $crate::on_backend!(memory, MemoryLeases, $($property),+);
        $crate::on_backend!(redis, RedisLeases, $($property),+);
    };
}

/// One backend's part of [`on_every_backend!`](crate::on_every_backend).
#[macro_export]
macro_rules! on_backend {
    ($name:ident, $backend:ident, $($property:ident),+) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $property() -> Result<(), $crate::Violation> {
                    super::$property::<$crate::backend::$backend>().await
                }
            )+
        }
    };
}

/// A backend under test.
#[async_trait]
pub trait Backend: Harness {
    /// How many generated cases a property gets: few where each costs flushed commits.
    const CASES: u32;

    /// The database under it as an integrator opens it; `None` where there is no SQL.
    async fn sql(&self) -> Option<Sql>;

    /// Its ports with the constraints gone that would stand in for a broken rule of sending or
    /// opening.
    async fn unconstrained(&self) -> Stores;
}

/// The unique indexes behind 2.1, 2.2 and 2.4.
const CONSTRAINTS: [&str; 3] =
    ["cg_chat_message_seq", "cg_chat_message_key", "cg_chat_session_open"];

/// Everything in this process.
#[derive(Debug)]
pub struct Memory(MemoryWorld);

#[async_trait]
impl Harness for Memory {
    async fn start() -> Self {
        Self(MemoryWorld::new(Arc::new(ManualClock::default())))
    }

    fn stores(&self) -> Stores {
        self.0.stores()
    }

    /// The world stands for the database, which outlives the process: only the handles are new.
    async fn restart(&mut self) {
        self.0 = self.0.clone();
    }
}

#[async_trait]
impl Backend for Memory {
    const CASES: u32 = 128;

    async fn sql(&self) -> Option<Sql> {
        None
    }

    async fn unconstrained(&self) -> Stores {
        loosened(&self.stores())
    }
}

/// One SQLite file in a folder of its own.
#[derive(Debug)]
pub struct Sqlite {
    folder: TempDir,
    store: SqliteStore,
}

impl Sqlite {
    fn path(folder: &TempDir) -> PathBuf {
        folder.path().join("kefu.db")
    }

    async fn open(folder: &TempDir) -> SqliteStore {
        // A hundred at once on a busy machine may wait for the writer longer than a caller of the product
        // would; that they do is no failure of a property.
        let acquire_timeout = Duration::from_secs(60);
        let options = SqliteOptions { acquire_timeout, ..SqliteOptions::default() };
        let opened = SqliteStore::open(&Self::path(folder), options).await;
        opened.expect("the file opens")
    }
}

#[async_trait]
impl Harness for Sqlite {
    async fn start() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let store = Self::open(&folder).await;
        Self { folder, store }
    }

    fn stores(&self) -> Stores {
        self.store.stores()
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.store = Self::open(&self.folder).await;
    }
}

#[async_trait]
impl Backend for Sqlite {
    const CASES: u32 = 12;

    async fn sql(&self) -> Option<Sql> {
        let url = format!("sqlite:{}", Self::path(&self.folder).display());
        Some(Sql::open(url).await)
    }

    async fn unconstrained(&self) -> Stores {
        if let Some(sql) = self.sql().await {
            for index in CONSTRAINTS {
                sql.execute(&format!("DROP INDEX {index}")).await;
            }
        }
        self.stores()
    }
}
