//! The flag and the gate that [`crate::turn`] is made of.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use tokio::sync::Mutex;
