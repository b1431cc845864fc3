#![doc = include_str!("../README.md")]

mod chat;
mod person;

pub use chat::{Load, Pace, Report, Times, run};
