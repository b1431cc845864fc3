//! Deliberately broken worlds. Each breaks one rule and leaves the others alone, by answering for a
//! port of the real stores, so that the same check that holds on these must fail.
//!
//! Where a table's own constraint would stand in for the broken rule, the constraint is gone too
//! ([`Backend::unconstrained`](crate::backend::Backend::unconstrained)).

mod assignments;
mod image_size;
mod lease;
mod line;
mod load;
mod loose;
mod meeting;
mod messages;
mod pending;
mod receipts;
mod sessions;
mod shown;

pub use assignments::{Assigning, AssignmentMistake};
pub use image_size::{Receiver, SizeFlaw, image_size};
pub use lease::{LeaseFlaw, lease, lease_by_wall_clock};
pub use line::{LineFlaw, line};
pub use load::{LoadFlaw, load};
pub use loose::loosened;
pub use messages::{CarelessMessages, SendMistake};
pub use pending::{PendingFlaw, pending};
pub use receipts::{CarelessReceipts, ReceiptMistake};
pub use sessions::{CarelessSessions, OpenMistake};
pub use shown::{SchemaMistake, caught_in_schema, caught_on};
