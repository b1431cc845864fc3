//! One statement that writes rows of several tables, each table's columns as arrays.
//!
//! The number of parameters and the text depend on which tables are written, never on how many rows,
//! so that a batch of any size is one message of one prepared statement.

use sea_orm::sqlx;
use sea_orm::{EntityTrait, IdenStatic, Iterable, ModelTrait, Value};
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::{Arguments, AssertSqlSafe, Encode, Type};

use crate::error::Failure;
use crate::rows::column;
use crate::transaction::{Autocommit, Rows as _, Transaction};
use crate::worker::{Held, holds};

/// A statement in the making. What was not added is not written.
#[derive(Default)]
pub(crate) struct Bulk {
    parts: Vec<Part>,
    arguments: PgArguments,
    is_guarded: bool,
}

/// Under which condition a statement of its own writes.
pub(crate) struct Guard {
    /// Common table expressions that the condition speaks of.
    pub(crate) with: String,
    /// A condition.
    pub(crate) condition: String,
}

struct Part {
    sql: String,
    rows: u64,
    /// Why another number of rows would have been written.
    otherwise: Failure,
}

impl Bulk {
    /// A statement whose parts write only under a condition: for [`Self::run_alone`].
    pub(crate) fn guarded() -> Self {
        Self { is_guarded: true, ..Self::default() }
    }

    /// What ties a part to the condition, if there is one; `word` joins it to the text before it.
    pub(crate) fn only_if(&self, word: &str) -> String {
        match self.is_guarded {
            true => format!(" {word} (SELECT ok FROM guard)"),
            false => String::new(),
        }
    }

    /// Inserts models.
    pub(crate) fn insert<E: EntityTrait>(&mut self, models: &[E::Model]) -> Result<(), Failure>
    where
        E::Model: ModelTrait<Entity = E>,
    {
        let otherwise = Failure::Forbidden("a row was not inserted");
        self.add_insert::<E>(models, "", otherwise)
    }

    /// Inserts models unless somebody else inserted one with the same key of the unique index
    /// `key` first: then nothing is written and the transaction starts again ([`Failure::Raced`]).
    pub(crate) fn insert_first<E: EntityTrait>(
        &mut self,
        models: &[E::Model],
        key: &str,
    ) -> Result<(), Failure>
    where
        E::Model: ModelTrait<Entity = E>,
    {
        let conflict = format!(" ON CONFLICT {key} DO NOTHING");
        self.add_insert::<E>(models, &conflict, Failure::Raced)
    }

    /// Updates models where the columns of `guard`, the first of them the key, are as the models have
    /// them; `otherwise` is what it means when some are not.
    pub(crate) fn update<E: EntityTrait>(
        &mut self,
        models: &[E::Model],
        guard: &[&str],
        otherwise: &'static str,
    ) -> Result<(), Failure>
    where
        E::Model: ModelTrait<Entity = E>,
    {
        if models.is_empty() {
            return Ok(());
        }
        let source = self.unnest::<E>(models)?;
        let names = names::<E>();
        let others = names.iter().filter(|name| !guard.contains(name));
        let set: Vec<_> = others.map(|name| format!("{name} = n.{name}")).collect();
        let same: Vec<_> = guard
            .iter()
            .enumerate()
            .map(|(place, name)| match place {
                0 => format!("t.{name} = n.{name}"),
                _ => format!("t.{name} IS NOT DISTINCT FROM n.{name}"),
            })
            .collect();
        let sql = format!(
            "UPDATE {} AS t SET {} FROM {source} AS n({}) WHERE {}",
            E::default().table_name(),
            set.join(", "),
            names.join(", "),
            same.join(" AND ")
        );
        self.add(sql, models.len(), Failure::Forbidden(otherwise));
        Ok(())
    }

    /// Adds any statement that writes `rows` rows and has no `RETURNING`.
    pub(crate) fn add(&mut self, sql: String, rows: usize, otherwise: Failure) {
        self.parts.push(Part { sql, rows: rows as u64, otherwise });
    }

    /// Adds a parameter; gives its name in the text.
    pub(crate) fn bind<'a, T>(&mut self, value: T) -> Result<String, Failure>
    where
        T: Encode<'a, Postgres> + Type<Postgres>,
    {
        self.arguments.add(value).map_err(sqlx::Error::Encode)?;
        Ok(format!("${}", self.arguments.len()))
    }

    /// Writes everything, or fails.
    pub(crate) async fn run(mut self, transaction: &mut Transaction) -> Result<(), Failure> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let holds = self.lease_check(transaction.lease)?;
        let with: Vec<_> = self
            .parts
            .iter()
            .enumerate()
            .map(|(place, part)| format!("w{place} AS ({} RETURNING 1)", part.sql))
            .collect();
        let counts: Vec<_> = (0..self.parts.len())
            .map(|place| format!("(SELECT count(*) FROM w{place}), "))
            .collect();
        let sql = format!("WITH {} SELECT {}{holds}", with.join(", "), counts.concat());
        let query = sqlx::query_with(AssertSqlSafe(sql), self.arguments);
        let rows = transaction.query(query).await?;
        let row = rows.first().ok_or(Failure::Forbidden("a count is missing"))?;
        if !column::<bool>(row, self.parts.len())? {
            return Err(Failure::LeaseLost);
        }
        for (place, part) in self.parts.into_iter().enumerate() {
            if column::<i64>(row, place)?.unsigned_abs() != part.rows {
                return Err(part.otherwise);
            }
        }
        Ok(())
    }

    /// Writes everything as a transaction of its own, or nothing: `false` when the guard does not hold
    /// or the lease is lost.
    pub(crate) async fn run_alone(
        mut self,
        connection: &mut Autocommit<'_>,
        lease: Held,
        guard: &Guard,
    ) -> Result<bool, Failure> {
        let holds = self.lease_check(lease)?;
        let Guard { with, condition } = guard;
        let parts: Vec<_> = self
            .parts
            .iter()
            .enumerate()
            .map(|(place, part)| format!(", w{place} AS ({})", part.sql))
            .collect();
        let sql = format!(
            "WITH {with}, guard AS MATERIALIZED (SELECT {condition} AND {holds} AS ok){} \
             SELECT ok FROM guard",
            parts.concat()
        );
        let query = sqlx::query_with(AssertSqlSafe(sql), self.arguments);
        let rows = connection.write(query).await?;
        column(rows.first().ok_or(Failure::Forbidden("an answer is empty"))?, 0)
    }

    /// T3: the ids among these rows are unique only while their worker id is leased to this node. The
    /// statement that writes them is the one that looks, so that a process which froze between making
    /// and writing them writes nothing.
    fn lease_check(&mut self, held: Held) -> Result<String, Failure> {
        match held {
            Held::Unchecked => Ok("true".to_owned()),
            Held::Lost => Err(Failure::LeaseLost),
            Held::Leased { worker, epoch } => {
                let worker = self.bind(i32::from(worker.get()))?;
                let epoch = self.bind(epoch)?;
                Ok(holds(&worker, &epoch))
            }
        }
    }

    fn add_insert<E: EntityTrait>(
        &mut self,
        models: &[E::Model],
        conflict: &str,
        otherwise: Failure,
    ) -> Result<(), Failure>
    where
        E::Model: ModelTrait<Entity = E>,
    {
        if models.is_empty() {
            return Ok(());
        }
        let source = self.unnest::<E>(models)?;
        let sql = format!(
            "INSERT INTO {} ({}) SELECT * FROM {source}{}{conflict}",
            E::default().table_name(),
            names::<E>().join(", "),
            self.only_if("WHERE")
        );
        self.add(sql, models.len(), otherwise);
        Ok(())
    }

    /// The models as a table: one array a column.
    fn unnest<E: EntityTrait>(&mut self, models: &[E::Model]) -> Result<String, Failure>
    where
        E::Model: ModelTrait<Entity = E>,
    {
        let mut columns = Vec::new();
        for column in E::Column::iter() {
            columns.push(self.bind_column(models.iter().map(|model| model.get(column)))?);
        }
        Ok(format!("UNNEST({})", columns.join(", ")))
    }

    /// One column as an array of its type, NULLs included.
    fn bind_column(&mut self, values: impl Iterator<Item = Value>) -> Result<String, Failure> {
        let mut values = values.peekable();
        match values.peek() {
            Some(Value::BigInt(_)) => self.bind(array(values, |value| match value {
                Value::BigInt(value) => value,
                _ => None,
            })),
            Some(Value::Int(_)) => self.bind(array(values, |value| match value {
                Value::Int(value) => value,
                _ => None,
            })),
            Some(Value::SmallInt(_)) => self.bind(array(values, |value| match value {
                Value::SmallInt(value) => value,
                _ => None,
            })),
            Some(Value::Bool(_)) => self.bind(array(values, |value| match value {
                Value::Bool(value) => value,
                _ => None,
            })),
            Some(Value::String(_)) => self.bind(array(values, |value| match value {
                Value::String(value) => value,
                _ => None,
            })),
            _ => Err(Failure::Forbidden("a column of this type is not written in bulk")),
        }
    }
}

/// The values of one column, which are all of one type: a model's field has one.
fn array<T>(
    values: impl Iterator<Item = Value>,
    inner: impl Fn(Value) -> Option<T>,
) -> Vec<Option<T>> {
    values.map(inner).collect()
}

fn names<E: EntityTrait>() -> Vec<&'static str> {
    E::Column::iter().map(|column| column.as_str()).collect()
}
