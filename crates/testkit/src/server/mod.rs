//! Throw-away servers for the tests of adapters. A missing program fails the test and says what to
//! install.

use std::net::{Ipv4Addr, TcpListener};

pub mod pgbouncer;
pub mod postgres;
pub mod redis;
mod redis_time;

pub use redis_time::pass;

/// Below the range from which the system gives out ports of its own.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port that nobody listens on at this moment.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_port() -> u16 {
    // Any free port serves; nothing about a test is repeated by repeating it.
    let first = rand::random_range(PORTS);
    let ports = (first..PORTS.end).chain(PORTS.start..first);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.into_iter().find(is_free).expect("some port is free")
}
