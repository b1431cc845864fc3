//! One module per port. A case is a function over a harness that panics when the contract is broken.

pub mod agents;
pub mod assign_lock;
pub mod assignments;
pub mod canned;
pub mod exclusion;
pub mod faults;
pub mod history;
pub mod line;
pub mod load_board;
pub mod loads;
pub mod messages;
pub mod node_bus;
pub mod notes;
pub mod order;
pub mod outbox;
pub mod presence;
pub mod receipts;
pub mod search;
pub mod sessions;
pub mod task_leases;
pub mod uploads;
