//! Reading rows into domain types.

use kefu_entities::UnreadableRow;
use sea_orm::sqlx;
use sea_orm::{EntityTrait, FromQueryResult, QueryResult};
use sqlx::postgres::{PgArguments, PgRow, Postgres};
use sqlx::{Decode, Row, Type};

use crate::error::Failure;
use crate::open::Database;
use crate::transaction::Rows;

/// A statement with its values.
pub(crate) type Query<'q> = sqlx::query::Query<'q, Postgres, PgArguments>;

/// A statement of this crate.
pub(crate) fn query<'q>(sql: &'static str) -> Query<'q> {
    sqlx::query(sql)
}

/// Reads inside a transaction, or on a connection of its own; what is locked, the statement says.
pub(crate) async fn read<E, D>(
    connection: &mut impl Rows,
    query: Query<'_>,
) -> Result<Vec<D>, Failure>
where
    E: EntityTrait,
    D: TryFrom<E::Model, Error = UnreadableRow>,
{
    domain::<E, D>(connection.query(query).await?)
}

/// Reads what is committed.
pub(crate) async fn committed<E, D>(
    database: &Database,
    query: Query<'_>,
) -> Result<Vec<D>, Failure>
where
    E: EntityTrait,
    D: TryFrom<E::Model, Error = UnreadableRow>,
{
    domain::<E, D>(database.read(query).await?)
}

/// Rows of `E`, which may carry further columns.
pub(crate) fn domain<E, D>(rows: Vec<PgRow>) -> Result<Vec<D>, Failure>
where
    E: EntityTrait,
    D: TryFrom<E::Model, Error = UnreadableRow>,
{
    let read = |row: PgRow| {
        let model = E::Model::from_query_result(&QueryResult::from(row), "")?;
        Ok(D::try_from(model)?)
    };
    rows.into_iter().map(read).collect()
}

/// A column by its place.
pub(crate) fn column<'r, T>(row: &'r PgRow, index: usize) -> Result<T, Failure>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    Ok(row.try_get(index)?)
}
