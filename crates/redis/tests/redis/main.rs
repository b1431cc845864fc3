//! The adapter on real servers: one for all tests of this binary, one that refuses steps over two
//! slots, and some that a test kills.

mod board;
mod bus;
mod contract;
mod faults;
mod harness;
mod presence;
