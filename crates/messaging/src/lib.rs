#![doc = include_str!("../README.md")]

mod append;
mod asked;
mod batch;
mod delivery;
mod error;
pub mod invariant;
mod message;
mod push;
mod receipt;
mod receipts;
mod retry;
mod search;
mod sends;
mod store;
mod words;

pub use append::{
    AppendOutcome, AppendRequest, AppendSnapshot, AppendTarget, AppendVerdict, Draft, Fresh,
    Stored, Tip, decide_append,
};
pub use asked::Asked;
pub use batch::{BatchConfig, Batcher, Flush, Pending, SubmitError};
pub use delivery::{Delivery, Parties};
pub use error::MessagingError;
pub use message::{Message, MessageStatus, MessageType, Sender, Side};
pub use push::{Push, Pusher, QueueEntry, Reach, RemovalReason, SessionOffer};
pub use receipt::{
    Receipt, ReceiptOutcome, ReceiptRequest, ReceiptSnapshot, ReceiptVerdict, Reported,
    StatusChange, decide_receipts,
};
pub use receipts::Receipts;
pub use retry::RetrySchedule;
pub use search::{
    OpenedSession, Progress, SearchEntry, SessionFilter, SessionSearch, Unindexed, Whose,
};
pub use sends::{PendingSend, Sends};
pub use store::{AppendDecision, MessageStore, ReceiptDecision, Window};
pub use words::{SearchQuery, Wanted, words};
