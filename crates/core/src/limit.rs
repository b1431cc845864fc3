//! Default limits, each with its source. Configuration may narrow them.

use std::time::Duration;

/// Scalar values in a text message (CC-08, M1).
pub const MAX_MESSAGE_CHARS: usize = 500;
/// Scalar values in a rating comment (`protocol.md`).
pub const MAX_RATING_CHARS: usize = 500;
/// Scalar values in a transfer note and in a private note (T4).
pub const MAX_NOTE_CHARS: usize = 500;
/// Scalar values in a canned reply: what it becomes is a message.
pub const MAX_CANNED_CHARS: usize = MAX_MESSAGE_CHARS;
/// Scalar values in the shortcut of a canned reply, which is typed.
pub const MAX_SHORTCUT_CHARS: usize = 32;
/// Canned replies of one agent, and of the team: a menu that is read, and a bound for its list.
pub const MAX_CANNED: usize = 100;
/// Scalar values in an avatar URL (T4).
pub const MAX_AVATAR_CHARS: usize = 512;
/// Scalar values in the address of a visitor's page, which is relayed and never stored.
pub const MAX_PAGE_URL_CHARS: usize = 1_024;
/// Scalar values in the title of a visitor's page.
pub const MAX_PAGE_TITLE_CHARS: usize = 256;
/// Scalar values in a language tag (BCP 47 recommends room for 35).
pub const MAX_LANGUAGE_CHARS: usize = 35;
/// Scalar values in every other stored string (T4).
pub const MAX_SHORT_CHARS: usize = 128;
/// Bytes of an uploaded image (CC-18).
pub const MAX_UPLOAD_BYTES: u64 = 2_097_152;
/// Pixels along one side of an uploaded image.
pub const MAX_IMAGE_SIDE: u32 = 8_192;
/// Sessions one agent may hold (CC-03).
pub const MAX_SESSIONS_PER_AGENT: u32 = 10;
/// Messages in one page and in `unread` after a reconnect (CC-09).
pub const PAGE: u32 = 50;
/// Waiting sessions that consoles are shown (Q2).
pub const QUEUE_LIST: u32 = 50;
/// Heads of the line that one drain pass takes (Z2).
pub const DRAIN_HEADS: u32 = 64;
/// A connection, and a person, is gone this long after the last sign of life (CC-11, P1).
pub const PRESENCE_TTL: Duration = Duration::from_secs(60);
/// Client heartbeats (CC-10).
pub const HEARTBEAT: Duration = Duration::from_secs(30);
/// Server pings (P2).
pub const SERVER_PING: Duration = Duration::from_secs(25);
/// An agent gone longer than this has open sessions requeued (Z7).
pub const AGENT_GRACE: Duration = Duration::from_secs(120);
/// Distances between pushes of an unacknowledged message (CC-06, M3).
pub const PUSH_RETRIES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Life of `cs:lock:assign:{userId}` (CC-02).
pub const ASSIGN_LOCK: Duration = Duration::from_millis(3_000);
/// A typing mark ends by itself (P3).
pub const TYPING_TTL: Duration = Duration::from_secs(6);
/// The offline notice is repeated no sooner (Q2).
pub const OFFLINE_NOTICE_EVERY: Duration = Duration::from_secs(600);
/// Queue positions and lists are coalesced over this span (Q2).
pub const QUEUE_COALESCE: Duration = Duration::from_millis(250);
/// Connections one person may hold (L2).
pub const CONNECTIONS_PER_PERSON: usize = 10;

/// How long confirmed outbox rows stay for other systems to read (N2), unless configured.
pub const OUTBOX_KEEP: Duration = Duration::from_secs(24 * 3_600);
