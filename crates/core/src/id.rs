//! Newtypes for every id, so that no bare `i64` or `String` crosses a port.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A value that is not an id of the wanted kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {kind}")]
pub struct InvalidId {
    /// The name of the id type, as clients know it.
    pub kind: &'static str,
}

macro_rules! snowflake_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        ///
        /// A positive 64-bit snowflake (T3). Text form, also on the wire, is decimal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(i64);

        impl $name {
            /// Wraps a raw snowflake.
            ///
            /// # Errors
            /// [`InvalidId`] unless `raw` is positive.
            pub const fn new(raw: i64) -> Result<Self, InvalidId> {
                if raw > 0 { Ok(Self(raw)) } else { Err(InvalidId { kind: $kind }) }
            }

            /// The raw snowflake.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }

            /// Takes the next id of `ids` that lies above `floor` (0 for none).
            #[must_use]
            pub fn next_after(ids: &dyn crate::IdSource, floor: i64) -> Self {
                Self(ids.next_after(floor))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let canonical = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let raw = text.parse().ok().filter(|_| canonical);
                raw.map_or(Err(InvalidId { kind: $kind }), Self::new)
            }
        }
    };
}

snowflake_id!(
    /// A session: one conversation of one user (`cg_chat_session.id`).
    SessionId,
    "sessionId"
);
snowflake_id!(
    /// A stored message (`cg_chat_message.msg_id`).
    MsgId,
    "msgId"
);
snowflake_id!(
    /// An event in the outbox (`cg_chat_outbox.id`).
    EventId,
    "eventId"
);
snowflake_id!(
    /// A decision record (`cg_chat_assignment.id`).
    AssignmentId,
    "assignmentId"
);
snowflake_id!(
    /// A private note (`cg_chat_note.note_id`).
    NoteId,
    "noteId"
);
snowflake_id!(
    /// A canned reply (`cg_chat_canned.id`).
    CannedId,
    "id"
);

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and wraps `text`.
            ///
            /// # Errors
            /// [`InvalidId`] when `text` breaks the rule of this id.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(text.into())) } else { Err(InvalidId { kind: $kind }) }
            }

            /// The text of the id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().into()
            }
        }
    };
}

/// `[A-Za-z0-9_.-]{1,64}`, the rule of `protocol.md` for people and nodes.
fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// 1–128 scalar values without control characters (`protocol.md`, T4).
fn is_client_key(text: &str) -> bool {
    !text.is_empty() && text.chars().take(129).count() <= 128 && !text.chars().any(char::is_control)
}

text_id!(
    /// A visitor, as the token's `sub` names them.
    UserId,
    "userId",
    is_name
);
text_id!(
    /// An agent or supervisor, as the token's `sub` names them (`admin_id` in the tables).
    AdminId,
    "adminId",
    is_name
);
text_id!(
    /// The client's own key of one logical send: the idempotency key of T2.
    ClientMsgId,
    "clientMsgId",
    is_client_key
);
text_id!(
    /// The name of one running node.
    NodeName,
    "node name",
    is_name
);
text_id!(
    /// Ties a frame, its log lines and its events together.
    TraceId,
    "traceId",
    is_name
);

/// One live connection of a node; unique within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnId(pub u64);

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of a message in its session: 1, 2, 3 … without gaps (T1). 0 means "before the first".
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub i64);

impl Seq {
    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ten worker bits of a snowflake (T3). 0 when embedded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerId(u16);

impl WorkerId {
    /// # Errors
    /// [`InvalidId`] above 1023.
    pub const fn new(raw: u16) -> Result<Self, InvalidId> {
        if raw < 1024 { Ok(Self(raw)) } else { Err(InvalidId { kind: "worker id" }) }
    }

    /// The raw number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snowflake_ids_take_canonical_positive_decimals_only() {
        assert_eq!("42".parse::<MsgId>(), MsgId::new(42));
        for bad in ["", "0", "-1", "+1", " 1", "1.0", "9223372036854775808", "0x10"] {
            assert_eq!(bad.parse::<MsgId>(), Err(InvalidId { kind: "msgId" }), "{bad:?}");
        }
    }

    #[test]
    fn person_ids_follow_the_wire_rule() {
        assert!(UserId::new("a.B_9-").is_ok());
        assert!(UserId::new("x".repeat(64)).is_ok());
        for bad in [String::new(), "x".repeat(65), "a b".into(), "客服".into(), "a:b".into()] {
            assert!(UserId::new(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn client_keys_count_scalar_values() {
        assert!(ClientMsgId::new("客".repeat(128)).is_ok());
        assert!(ClientMsgId::new("客".repeat(129)).is_err());
        assert!(ClientMsgId::new("a\u{0}").is_err());
    }
}
