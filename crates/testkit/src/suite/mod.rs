//! One module per port. A case is a function over a harness that panics when the contract is broken.

pub mod assign_lock;
pub mod sessions;
