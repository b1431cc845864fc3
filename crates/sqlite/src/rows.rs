//! Statements over many rows, each with one JSON array as its only parameter.
//!
//! The text of a statement never depends on the number of rows, so it is prepared once per
//! connection; SQLite's JSON keeps 64-bit integers exact.

use kefu_entities::UnreadableRow;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, EntityTrait, IdenStatic,
    Iterable, Statement, Value,
};
use serde::Serialize;

use crate::error::Failure;

/// Inserts the rows of an array of `E`'s models.
pub(crate) fn insert_sql<E: EntityTrait>() -> String {
    let columns = columns::<E>();
    let values: Vec<_> = columns.iter().map(|column| field(column)).collect();
    let table = E::default().table_name().to_owned();
    format!(
        "INSERT INTO {table} ({}) SELECT {} FROM json_each(?1) AS j WHERE true",
        columns.join(", "),
        values.join(", ")
    )
}

/// [`insert_sql`], replacing what has the same `key`.
pub(crate) fn upsert_sql<E: EntityTrait>(key: &str) -> String {
    let columns = columns::<E>();
    let others = columns.iter().filter(|column| **column != key);
    let set: Vec<_> = others.map(|column| format!("{column} = excluded.{column}")).collect();
    format!("{} ON CONFLICT ({key}) DO UPDATE SET {}", insert_sql::<E>(), set.join(", "))
}

/// Updates the rows of an array of `E`'s models, where the columns of `guard`, among them the key,
/// are as the models have them.
pub(crate) fn update_sql<E: EntityTrait>(guard: &[&str]) -> String {
    let columns = columns::<E>();
    let others = columns.iter().filter(|column| !guard.contains(column));
    let set: Vec<_> = others.map(|column| format!("{column} = {}", field(column))).collect();
    let table = E::default().table_name().to_owned();
    let same: Vec<_> =
        guard.iter().map(|column| format!("{table}.{column} IS {}", field(column))).collect();
    format!(
        "UPDATE {table} SET {} FROM json_each(?1) AS j WHERE {}",
        set.join(", "),
        same.join(" AND ")
    )
}

fn columns<E: EntityTrait>() -> Vec<&'static str> {
    E::Column::iter().map(|column| column.as_str()).collect()
}

fn field(column: &str) -> String {
    format!("j.value ->> '$.{column}'")
}

/// Runs a statement of this module; says how many rows it wrote. No statement for no rows.
pub(crate) async fn write<R: Serialize + Sync>(
    transaction: &DatabaseTransaction,
    sql: &str,
    rows: &[R],
) -> Result<u64, Failure> {
    if rows.is_empty() {
        return Ok(0);
    }
    execute(transaction, sql, [json(rows)?]).await
}

/// Runs any statement; says how many rows it wrote.
pub(crate) async fn execute(
    transaction: &DatabaseTransaction,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<u64, Failure> {
    Ok(transaction.execute_raw(statement(sql, values)).await?.rows_affected())
}

/// Reads inside a transaction. The type is the point: the pool would read outside it.
pub(crate) async fn locked<E, D>(
    transaction: &DatabaseTransaction,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<D>, Failure>
where
    E: EntityTrait,
    D: TryFrom<E::Model, Error = UnreadableRow>,
{
    select::<E, D, _>(transaction, statement(sql, values)).await
}

/// Reads what is committed.
pub(crate) async fn committed<E, D>(
    readers: &DatabaseConnection,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<D>, Failure>
where
    E: EntityTrait,
    D: TryFrom<E::Model, Error = UnreadableRow>,
{
    select::<E, D, _>(readers, statement(sql, values)).await
}

async fn select<E, D, C>(connection: &C, statement: Statement) -> Result<Vec<D>, Failure>
where
    E: EntityTrait,
    D: TryFrom<E::Model, Error = UnreadableRow>,
    C: ConnectionTrait,
{
    // Collected, never streamed: a transaction dropped with a live stream would panic.
    let models = E::find().from_raw_sql(statement).all(connection).await?;
    Ok(models.into_iter().map(D::try_from).collect::<Result<_, _>>()?)
}

/// A statement of this backend.
pub(crate) fn statement(sql: &str, values: impl IntoIterator<Item = Value>) -> Statement {
    Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)
}

/// A parameter that holds `rows`.
pub(crate) fn json<R: Serialize>(rows: &[R]) -> Result<Value, Failure> {
    Ok(serde_json::to_string(rows)?.into())
}
