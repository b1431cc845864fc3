//! What must hold of stored messages whatever happened before, as pure functions over rows.

use std::collections::BTreeSet;

use kefu_core::snowflake::timestamp_of;
use kefu_core::{MsgId, Seq};
use kefu_session::Session;
use kefu_session::invariant::Violation;

use crate::{Message, MessageStatus};

mod told;

pub use told::{
    check_acknowledged, check_authors, check_held, check_resumed, check_told, check_undelivered,
};

/// `seq` is 1, 2, 3 …; ids and times rise with it; keys are unique; the session knows its tip (T1, T2).
#[must_use]
pub fn check_messages(session: &Session, messages: &[Message]) -> Vec<Violation> {
    let id = session.id;
    let mut found = Vec::new();
    let mut report = |holds: bool, what: &str| {
        if !holds {
            found.push(Violation::new(format!("session {id}: {what}")));
        }
    };
    let gapless = messages.iter().zip(1..).all(|(message, seq)| message.seq == Seq(seq));
    report(gapless, "seq is not 1, 2, 3 …");
    report(messages.is_sorted_by(|a, b| a.msg_id < b.msg_id), "ids do not rise with seq");
    report(messages.is_sorted_by_key(|m| m.create_time), "times do not rise with seq");
    let timed = messages.iter().all(|m| m.create_time == timestamp_of(m.msg_id.get()));
    report(timed, "a time is not its id's millisecond");
    let mut keys = BTreeSet::new();
    let unique = messages.iter().all(|m| keys.insert((&m.sender, &m.client_msg_id)));
    report(unique, "a key is stored twice");
    report(messages.iter().all(|m| m.session_id == id), "holds another session's message");
    let tip: Option<(Seq, MsgId)> = messages.last().map(|m| (m.seq, m.msg_id));
    let known = session.last_msg_id.map(|msg| (session.last_seq, msg));
    report(tip == known, "its tip is not its last message");
    found
}

/// What one session's messages may become: more, in front of nothing; the old ones unchanged but for a
/// status further on (M3).
#[must_use]
pub fn check_growth(before: &[Message], after: &[Message]) -> Vec<Violation> {
    let lost = before.get(after.len()..).unwrap_or_default().iter();
    let lost = lost.map(|message| Violation::new(format!("message {} is gone", message.msg_id)));
    let changed = before.iter().zip(after).filter_map(|(old, new)| {
        let same = Message { status: old.status, ..new.clone() } == *old;
        let onward = how_far(new.status) >= how_far(old.status);
        let id = old.msg_id;
        match (same, onward) {
            (true, true) => None,
            (false, _) => Some(Violation::new(format!("message {id} was rewritten"))),
            (true, false) => Some(Violation::new(format!(
                "message {id} went back from {} to {}",
                old.status, new.status
            ))),
        }
    });
    lost.chain(changed).collect()
}

const fn how_far(status: MessageStatus) -> u8 {
    match status {
        MessageStatus::Pending => 0,
        MessageStatus::Failed => 1,
        MessageStatus::Delivered => 2,
        MessageStatus::Read => 3,
    }
}
