//! Private notes and canned replies.

use async_trait::async_trait;
use sea_orm_migration::sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use crate::dialect::Texts;

const TEXTS: Texts = Texts {
    sqlite: include_str!("sqlite/m20261201_000003_console.sql"),
    postgres: include_str!("postgres/m20261201_000003_console.sql"),
};

pub(crate) struct Console;

impl MigrationName for Console {
    fn name(&self) -> &'static str {
        "m20261201_000003_console"
    }
}

#[async_trait]
impl MigrationTrait for Console {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        TEXTS.run(manager).await
    }
}
