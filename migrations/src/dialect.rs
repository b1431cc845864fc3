//! One migration, one text per backend.

use sea_orm_migration::SchemaManager;
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend, DbErr};

/// The texts of one migration.
pub(crate) struct Texts {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Texts {
    /// Runs the text of the manager's backend; one without a text cannot be migrated.
    pub(crate) async fn run(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let sql = match backend {
            DbBackend::Sqlite => self.sqlite,
            DbBackend::Postgres => self.postgres,
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
