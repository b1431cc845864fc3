//! The vocabulary every other crate speaks: ids, time, error codes, limits and text rules.
//!
//! Nothing here performs I/O or knows a profile. `serde` and `thiserror` are the only
//! dependencies, so that an embedder of one domain crate pulls in almost nothing.

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
    AdminId, AssignmentId, ClientMsgId, ConnId, EventId, InvalidId, MsgId, NodeName, Seq,
    SessionId, TraceId, UserId, WorkerId,
};
pub use page::{Page, PageLimit};
pub use person::{Actor, AgentInfo, Balance, Caller, Person, Role, UserInfo};
pub use snowflake::{IdSource, ManualIds, SnowflakeIds};
pub use text::{TextError, check_short_text};
