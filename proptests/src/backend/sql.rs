//! The database under a backend as an integrator opens it.

use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement, Value};

/// A connection with none of kefu's settings, while kefu has the database open.
#[derive(Debug, Clone)]
pub struct Sql(DatabaseConnection);

impl Sql {
    pub(crate) async fn open(url: String) -> Self {
        Self(Database::connect(url).await.expect("the database opens"))
    }

    /// Which SQL it speaks.
    #[must_use]
    pub fn dialect(&self) -> DbBackend {
        self.0.get_database_backend()
    }

    /// The number that `sql` selects, with `value` for its `?`.
    ///
    /// # Panics
    /// When the database refuses it.
    pub async fn count(&self, sql: &str, value: impl Into<Value> + Send) -> i64 {
        let row = self.0.query_one_raw(self.statement(sql, value)).await.expect("readable");
        row.expect("a row").try_get_by_index(0).expect("a number")
    }

    /// The texts that `sql` selects, in its order.
    ///
    /// # Panics
    /// When the database refuses it.
    pub async fn texts(&self, sql: &str, value: impl Into<Value> + Send) -> Vec<String> {
        let rows = self.0.query_all_raw(self.statement(sql, value)).await.expect("readable");
        rows.iter().map(|row| row.try_get_by_index(0).expect("a text")).collect()
    }

    /// Changes rows or schema behind kefu's back.
    ///
    /// # Panics
    /// When the database refuses it.
    pub async fn execute(&self, sql: &str) {
        self.0.execute_unprepared(sql).await.expect("accepted");
    }

    /// PostgreSQL writes the one parameter as `$1`; the rest of a statement is as it stands.
    fn statement(&self, sql: &str, value: impl Into<Value>) -> Statement {
        let dialect = self.dialect();
        let sql = match dialect {
            DbBackend::Postgres => sql.replace('?', "$1"),
            _ => sql.to_owned(),
        };
        Statement::from_sql_and_values(dialect, sql, [value.into()])
    }
}
