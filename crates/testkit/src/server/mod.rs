//! Throw-away servers for the tests of adapters. A missing program fails the test and says what to
//! install.

pub mod redis;
