//! One conversation of one user, from waiting to ended: its states and legal transitions as pure
//! functions, who may do what with it, and the [`SessionStore`] port.
//!
//! Nothing here changes the load of an agent: those transactions belong to `kefu-assignment`.

mod access;
mod opening;
mod rating;
mod session;
mod store;

pub use access::{Access, access};
pub use opening::{OpenVerdict, decide_open, priority};
pub use rating::{RatingRequest, decide_rating};
pub use session::{Rating, Refusal, Session, Status, UserProfile};
pub use store::{OpenDecision, Opened, SessionDecision, SessionStore, SessionVerdict, Updated};
