#![doc = include_str!("../README.md")]

mod access;
pub mod invariant;
mod opening;
mod rating;
mod session;
mod store;

pub use access::{Access, access, role_allows};
pub use opening::{OpenVerdict, decide_open, decide_refresh, priority};
pub use rating::{RatingRequest, decide_rating};
pub use session::{Rating, Refusal, Session, Status, UserProfile};
pub use store::{OpenDecision, Opened, SessionDecision, SessionStore, SessionVerdict, Updated};
