#![doc = include_str!("../README.md")]

pub mod invariant;
mod line;
mod notice;

pub use line::{Line, Place, WaitingLine, ahead};
pub use notice::{Outlook, decide_notice};
