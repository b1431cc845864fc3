//! The rules of a session, each case citing its number.

mod access;
mod common;
mod opening;
mod rating;
mod transition;
