//! Why the server closes a connection.

use std::fmt;

/// A close code of the WebSocket, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseCode {
    /// 1001: the server goes away.
    GoingAway,
    /// 1003: a binary frame.
    BinaryFrame,
    /// 1008: 20 malformed frames in a minute.
    Policy,
    /// 1009: a frame over the limit.
    TooBig,
    /// 1012: the server restarts (L3).
    Restart,
    /// 4000: no `chat.connect` within 10 s, or another frame before it.
    NoConnect,
    /// 4001: a wrong, expired or missing token.
    Unauthenticated,
    /// 4002: the token expired and was not renewed within 30 s.
    TokenExpired,
    /// 4003: 60 s without a frame (CC-11).
    HeartbeatTimeout,
    /// 4004: the outbound queue is full (L1).
    SlowConsumer,
    /// 4005: too many connections of one person (L2).
    TooManyConnections,
}

impl CloseCode {
    /// All of them, by number.
    pub const ALL: [Self; 11] = [
        Self::GoingAway,
        Self::BinaryFrame,
        Self::Policy,
        Self::TooBig,
        Self::Restart,
        Self::NoConnect,
        Self::Unauthenticated,
        Self::TokenExpired,
        Self::HeartbeatTimeout,
        Self::SlowConsumer,
        Self::TooManyConnections,
    ];

    /// The number.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::GoingAway => 1001,
            Self::BinaryFrame => 1003,
            Self::Policy => 1008,
            Self::TooBig => 1009,
            Self::Restart => 1012,
            Self::NoConnect => 4000,
            Self::Unauthenticated => 4001,
            Self::TokenExpired => 4002,
            Self::HeartbeatTimeout => 4003,
            Self::SlowConsumer => 4004,
            Self::TooManyConnections => 4005,
        }
    }

    /// The reason sent with it.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::GoingAway => "going away",
            Self::BinaryFrame => "binary frames are not accepted",
            Self::Policy => "too many malformed frames",
            Self::TooBig => "frame is too big",
            Self::Restart => "restarting; reconnect with jitter",
            Self::NoConnect => "chat.connect must come first",
            Self::Unauthenticated => "unauthenticated",
            Self::TokenExpired => "token expired",
            Self::HeartbeatTimeout => "heartbeat timeout",
            Self::SlowConsumer => "slow consumer; resume to catch up",
            Self::TooManyConnections => "too many connections of one person",
        }
    }

    /// The close of a number, if it is one of ours.
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|close| close.code() == code)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_reasons_fit_a_close_frame() {
        for close in CloseCode::ALL {
            assert_eq!(CloseCode::from_code(close.code()), Some(close));
            assert!(close.reason().len() <= 123, "RFC 6455, 5.5: {close}");
        }
        assert_eq!(CloseCode::from_code(1000), None);
    }
}
