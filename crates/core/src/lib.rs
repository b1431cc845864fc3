#![doc = include_str!("../README.md")]

pub mod clock;
pub mod error;
pub mod id;
pub mod limit;
pub mod page;
pub mod person;
pub mod snowflake;
pub mod text;

pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use error::{ErrorCode, RetryClass, StoreFault};
pub use id::{
    AdminId, AssignmentId, CannedId, ClientMsgId, ConnId, EventId, InvalidId, MsgId, NodeName,
    NoteId, Seq, SessionId, TraceId, UserId, WorkerId,
};
pub use page::{Page, PageLimit};
pub use person::{Actor, AgentInfo, Balance, Caller, Person, Role, UserInfo};
pub use snowflake::{IdSource, ManualIds, SnowflakeIds};
pub use text::{TextError, check_short_text};
