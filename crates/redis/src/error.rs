//! How faults of Redis become faults of the ports, once for all of them.

use fred::error::{Error, ErrorKind};
use kefu_core::StoreFault;

/// Redis, or the way to it, failed while doing `operation`.
///
/// A command whose answer was lost may have been applied. It is `Unavailable` all the same: what is
/// kept here is leases, locks and copies, every call of it may be repeated, and nobody's content
/// depends on which of the two it was (A1).
pub(crate) fn store_fault(operation: &'static str, error: &Error) -> StoreFault {
    let kind = classify(error);
    metrics::counter!("kefu_redis_faults_total", "operation" => operation, "kind" => kind.as_str())
        .increment(1);
    match kind {
        Kind::Refused => StoreFault::internal(format!("redis, {operation}: {error}")),
        Kind::Timeout | Kind::Full | Kind::Unavailable => {
            StoreFault::unavailable(format!("redis, {operation}: {error}"))
        }
    }
}

/// An answer that no version of ours gives: the key was written by something else.
pub(crate) fn unreadable(operation: &'static str) -> StoreFault {
    StoreFault::internal(format!("redis, {operation}: unreadable answer"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No answer in time.
    Timeout,
    /// Too many commands wait already.
    Full,
    /// No connection, or a server that cannot take the command now.
    Unavailable,
    /// The server understood the command and will never take it.
    Refused,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
        }
    }
}

fn classify(error: &Error) -> Kind {
    match error.kind() {
        ErrorKind::Timeout => Kind::Timeout,
        ErrorKind::Backpressure => Kind::Full,
        ErrorKind::InvalidArgument
        | ErrorKind::InvalidCommand
        | ErrorKind::Parse
        | ErrorKind::NotFound => Kind::Refused,
        // Error replies without a kind of their own. Those of a server that loads, is full, is a
        // replica or runs a long script have a word of their own in front and pass.
        ErrorKind::Unknown if is_refusal(error.details()) => Kind::Refused,
        ErrorKind::Unknown
        | ErrorKind::Config
        | ErrorKind::Auth
        | ErrorKind::Routing
        | ErrorKind::IO
        | ErrorKind::Url
        | ErrorKind::Protocol
        | ErrorKind::Canceled
        | ErrorKind::Cluster
        | ErrorKind::Sentinel => Kind::Unavailable,
    }
}

fn is_refusal(reply: &str) -> bool {
    ["ERR", "CROSSSLOT"].contains(&reply.split(' ').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_will_never_be_taken_is_refused() {
        let unknown = |reply: &'static str| classify(&Error::new(ErrorKind::Unknown, reply));
        for passing in ["LOADING Redis is loading", "OOM command not allowed", "READONLY no", ""] {
            assert_eq!(unknown(passing), Kind::Unavailable, "{passing}");
        }
        assert_eq!(unknown("ERR wrong number of arguments"), Kind::Refused);
        assert_eq!(unknown("CROSSSLOT Keys in request"), Kind::Refused);
        let timeout = Error::new(ErrorKind::Timeout, "Request timed out.");
        assert!(matches!(store_fault("x", &timeout), StoreFault::Unavailable { .. }));
    }
}
