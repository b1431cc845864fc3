//! Running a check where it must fail.

use kefu_desk::Stores;
use sea_orm::DbBackend;

use crate::backend::{Backend, Sql};
use crate::{Violation, caught};

/// On a fresh backend whose stores `breaking` has spoilt, `check` must fail because of that.
///
/// # Errors
/// When the check holds there, or fails for another reason.
pub async fn caught_on<B: Backend>(
    breaking: impl FnOnce(Stores) -> Stores,
    because: &str,
    check: impl AsyncFnOnce(Stores) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let backend = B::start().await;
    caught(check(breaking(backend.stores())).await, because)
}

/// A mistake made in the database itself, in the test's own schema; kefu's code is the real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaMistake {
    /// A load never shrinks (2.6).
    KeepsLoad,
    /// A load never grows (2.6).
    LosesLoad,
    /// A message is delivered as soon as it is stored (2.7).
    DeliversAtOnce,
    /// Every seventh message of a session is gone again (2.7).
    LosesSeventh,
    /// All wait with the same priority (2.8).
    EvensPriority,
    /// The smallest balance has the highest priority (2.8).
    TurnsPriority,
    /// What an upload wrote is gone again (2.10).
    LosesUpload,
}

impl SchemaMistake {
    const fn in_sqlite(self) -> &'static str {
        match self {
            Self::KeepsLoad => {
                "AFTER UPDATE ON cg_chat_agent WHEN NEW.active_sessions < OLD.active_sessions BEGIN \
                 UPDATE cg_chat_agent SET active_sessions = OLD.active_sessions \
                 WHERE admin_id = NEW.admin_id; END"
            }
            Self::LosesLoad => {
                "AFTER UPDATE ON cg_chat_agent WHEN NEW.active_sessions > OLD.active_sessions BEGIN \
                 UPDATE cg_chat_agent SET active_sessions = OLD.active_sessions \
                 WHERE admin_id = NEW.admin_id; END"
            }
            Self::DeliversAtOnce => {
                "AFTER INSERT ON cg_chat_message BEGIN \
                 UPDATE cg_chat_message SET status = 'delivered' WHERE msg_id = NEW.msg_id; END"
            }
            Self::LosesSeventh => {
                "AFTER INSERT ON cg_chat_message WHEN NEW.seq % 7 = 0 BEGIN \
                 DELETE FROM cg_chat_message WHERE msg_id = NEW.msg_id; END"
            }
            Self::EvensPriority => {
                "AFTER INSERT ON cg_chat_session BEGIN \
                 UPDATE cg_chat_session SET priority = 0 WHERE id = NEW.id; END"
            }
            Self::TurnsPriority => {
                "AFTER INSERT ON cg_chat_session BEGIN \
                 UPDATE cg_chat_session SET priority = -priority WHERE id = NEW.id; END"
            }
            Self::LosesUpload => {
                "AFTER INSERT ON cg_chat_upload BEGIN \
                 DELETE FROM cg_chat_upload WHERE path = NEW.path; END"
            }
        }
    }

    /// When, and what is done then.
    const fn in_postgres(self) -> (&'static str, &'static str) {
        match self {
            Self::KeepsLoad => (
                "BEFORE UPDATE ON cg_chat_agent",
                "NEW.active_sessions := greatest(NEW.active_sessions, OLD.active_sessions)",
            ),
            Self::LosesLoad => (
                "BEFORE UPDATE ON cg_chat_agent",
                "NEW.active_sessions := least(NEW.active_sessions, OLD.active_sessions)",
            ),
            Self::DeliversAtOnce => {
                ("BEFORE INSERT ON cg_chat_message", "NEW.status := 'delivered'")
            }
            Self::LosesSeventh => (
                "AFTER INSERT ON cg_chat_message",
                "DELETE FROM cg_chat_message WHERE msg_id = NEW.msg_id AND seq % 7 = 0",
            ),
            Self::EvensPriority => ("BEFORE INSERT ON cg_chat_session", "NEW.priority := 0"),
            Self::TurnsPriority => {
                ("BEFORE INSERT ON cg_chat_session", "NEW.priority := -NEW.priority")
            }
            Self::LosesUpload => (
                "AFTER INSERT ON cg_chat_upload",
                "DELETE FROM cg_chat_upload WHERE path = NEW.path",
            ),
        }
    }

    fn trigger(self, dialect: DbBackend) -> String {
        if dialect == DbBackend::Sqlite {
            return format!("CREATE TRIGGER mistake {}", self.in_sqlite());
        }
        let (when, done) = self.in_postgres();
        format!(
            "CREATE FUNCTION mistake() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN {}; RETURN NEW; END'; \
             CREATE TRIGGER mistake {when} FOR EACH ROW EXECUTE FUNCTION mistake()",
            done.replace('\'', "''")
        )
    }
}

/// On a fresh backend whose schema makes `mistake`, `check` must fail because of that.
///
/// # Errors
/// When the check holds there, or fails for another reason.
///
/// # Panics
/// When there is no schema, or the database does not take the trigger.
pub async fn caught_in_schema<B: Backend>(
    mistake: SchemaMistake,
    because: &str,
    check: impl AsyncFnOnce(Stores, &Sql) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let backend = B::start().await;
    let sql = backend.sql().await.expect("a backend with SQL");
    sql.execute(&mistake.trigger(sql.dialect())).await;
    caught(check(backend.stores(), &sql).await, because)
}
