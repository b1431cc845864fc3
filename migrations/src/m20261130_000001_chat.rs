//! The first schema: every table of a chat.

use async_trait::async_trait;
use sea_orm_migration::sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use crate::dialect::Texts;

const TEXTS: Texts = Texts {
    sqlite: include_str!("sqlite/m20261130_000001_chat.sql"),
    postgres: include_str!("postgres/m20261130_000001_chat.sql"),
};

pub(crate) struct Chat;

impl MigrationName for Chat {
    fn name(&self) -> &'static str {
        "m20261130_000001_chat"
    }
}

#[async_trait]
impl MigrationTrait for Chat {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        TEXTS.run(manager).await
    }
}
