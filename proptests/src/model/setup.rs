//! What a machine runs on: a sound backend, or memory with one broken rule.

use std::fmt::Debug;

use kefu_testkit::Harness;

use crate::backend::{Memory, Postgres, Sqlite};

/// What a machine runs on.
pub trait Setup: Debug + 'static {
    /// The backend.
    type Harness: Harness;
    /// The rule that is broken there.
    const BROKEN: Option<Break>;
}

/// Memory as it is.
#[derive(Debug)]
pub struct OnMemory;

impl Setup for OnMemory {
    type Harness = Memory;
    const BROKEN: Option<Break> = None;
}

/// A SQLite file as it is.
#[derive(Debug)]
pub struct OnSqlite;

impl Setup for OnSqlite {
    type Harness = Sqlite;
    const BROKEN: Option<Break> = None;
}

/// PostgreSQL as it is.
#[derive(Debug)]
pub struct OnPostgres;

impl Setup for OnPostgres {
    type Harness = Postgres;
    const BROKEN: Option<Break> = None;
}

macro_rules! breaks {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// One broken rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Break {
            $($(#[$doc])* $name,)+
        }

        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $name;

            impl Setup for $name {
                type Harness = Memory;
                const BROKEN: Option<Break> = Some(Break::$name);
            }
        )+
    };
}

breaks! {
    /// A message is still stored after the end (S2).
    AnswersAfterEnd,
    /// The end is not final: a second one counts again (S4).
    EndsTwice,
    /// Earlier keys are not looked up (T2).
    ForgetsKeys,
    /// A status is raised from `pending`, whatever it was (M3).
    ReceiptsGoBack,
    /// A cumulative report counts for the named message alone.
    CumulativeNamesOne,
    /// A receiver who turns up after `failed` is not believed (M3).
    FailedIsFinal,
    /// First come first served, whatever the balance (Q1).
    BalanceIgnored,
    /// Waiting counts for nothing (Q1).
    AgeingIgnored,
    /// A requeued session goes to the end (Z7).
    RequeueLosesPlace,
    /// A newer token changes nothing while waiting.
    RefreshForgotten,
    /// An ended session stays on its agent's load (2.6).
    LoadKept,
    /// One session more than the cap (CC-03).
    CapOffByOne,
    /// Ties go by id alone (Z1).
    TiesById,
    /// Who is gone counts as there (Z2, Z7).
    LivenessIgnored,
    /// A page above a position lacks its first message (M4).
    FirstIsSkipped,
    /// A message counts as delivered once stored, whether its push arrives or not (M3).
    DeliveredAtOnce,
    /// A message is stored under another's name (A3).
    AuthorFromClient,
    /// A push goes to everybody who is connected (A3, M2).
    PushesReachAll,
}
