//! The bus and its relay in paused time: nothing lost, nothing confirmed before it was handled.

mod common;
mod confirm;
mod overflow;
mod restart;
