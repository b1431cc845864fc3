//! The property suite of kefu: the ten properties of spec A section 2, on every backend, each beside
//! broken worlds on which the same check fails. `docs/properties.md` has the table.
//!
//! A property is a function from a world to `Result<(), Violation>`, so that a test can ask for both:
//! that it holds, and that it is able not to.

#![expect(clippy::expect_used, reason = "test support: a panic is how a case fails")]

pub mod backend;
pub mod broken;
pub mod fuzz;
mod generated;
pub mod model;
pub mod nodes;
mod passing;
mod seed;
mod violation;

pub use generated::generated;
pub use violation::{Violation, caught, ensure, sound};
