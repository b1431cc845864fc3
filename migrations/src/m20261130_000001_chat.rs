//! The first schema: every table of a chat.

use async_trait::async_trait;
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend, DbErr};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

/// The text per backend; a backend without one cannot be migrated.
const SQLITE: &str = include_str!("sqlite/m20261130_000001_chat.sql");

pub(crate) struct Chat;

impl MigrationName for Chat {
    fn name(&self) -> &'static str {
        "m20261130_000001_chat"
    }
}

#[async_trait]
impl MigrationTrait for Chat {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let sql = match backend {
            DbBackend::Sqlite => SQLITE,
            _ => {
                return Err(DbErr::BackendNotSupported {
                    db: backend.as_str(),
                    ctx: "kefu-migrations",
                });
            }
        };
        manager.get_connection().execute_unprepared(sql).await?;
        Ok(())
    }
}
