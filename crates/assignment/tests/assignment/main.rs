//! The rules of assignment and its services over a world in memory.

mod agent;
mod common;
mod pass;
mod race;
mod serve;
