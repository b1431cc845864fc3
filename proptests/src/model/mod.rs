//! State machines: what the product does, step by step, against plain reference models.
//!
//! A model is a few structs and vectors that restate the promises. It knows nothing of the production
//! rules: no transition, comparison or priority of theirs is called here. A machine (in `tests/`) runs
//! the same steps on a model and on real services, compares every answer and every state, and checks
//! the invariants of the domain crates after each step.

mod bench;
mod bent;
mod run;
mod setup;
mod standing;

pub mod desk;
pub mod house;
pub mod life;
pub mod line;
pub mod loads;
pub mod receipts;
pub mod visits;

pub use bench::{Bench, Who, became, code};
pub use run::{caught, holds};
pub use setup::{
    AgeingIgnored, AnswersAfterEnd, AuthorFromClient, BalanceIgnored, Break, CapOffByOne,
    CumulativeNamesOne, DeliveredAtOnce, EndsTwice, FailedIsFinal, FirstIsSkipped, ForgetsKeys,
    LivenessIgnored, LoadKept, OnMemory, OnPostgres, OnSqlite, PushesReachAll, ReceiptsGoBack,
    RefreshForgotten, RequeueLosesPlace, Setup, TiesById,
};
pub use standing::{Stage, Standing};
