//! What several processes on one database need besides.

use async_trait::async_trait;
use sea_orm_migration::sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

use crate::dialect::Texts;

const TEXTS: Texts = Texts {
    sqlite: include_str!("sqlite/m20261130_000002_cluster.sql"),
    postgres: include_str!("postgres/m20261130_000002_cluster.sql"),
};

pub(crate) struct Cluster;

impl MigrationName for Cluster {
    fn name(&self) -> &'static str {
        "m20261130_000002_cluster"
    }
}

#[async_trait]
impl MigrationTrait for Cluster {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        TEXTS.run(manager).await
    }
}
