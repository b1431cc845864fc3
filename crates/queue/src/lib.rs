//! The waiting line: who is before whom, what place a visitor has, and when they are told that
//! nobody is online.
//!
//! The line holds sessions, not messages (Q1). SQL is its authority; an entry leaves only with the
//! commit of its assignment (Q3), so this crate only reads.

mod line;
mod notice;

pub use line::{Line, Place, WaitingLine, ahead};
pub use notice::{Outlook, decide_notice};
