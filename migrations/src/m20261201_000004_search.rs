//! The index of what was said, and lists of past sessions.

use async_trait::async_trait;
use sea_orm_migration::sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use crate::dialect::Texts;

const TEXTS: Texts = Texts {
    sqlite: include_str!("sqlite/m20261201_000004_search.sql"),
    postgres: include_str!("postgres/m20261201_000004_search.sql"),
};

pub(crate) struct Search;

impl MigrationName for Search {
    fn name(&self) -> &'static str {
        "m20261201_000004_search"
    }
}

#[async_trait]
impl MigrationTrait for Search {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        TEXTS.run(manager).await
    }
}
