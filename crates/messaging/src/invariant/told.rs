//! What must hold of what people are told, as pure functions over stored rows and what reached them.

use std::collections::BTreeSet;

use kefu_core::{AdminId, MsgId, Page, Person, Seq, SessionId};
use kefu_session::Session;
use kefu_session::invariant::Violation;

use crate::{Message, Push, Sender, Side};

/// Whoever resumes above a position gets exactly what is stored above it, from the oldest on, and is
/// told whether that was all (M4).
#[must_use]
pub fn check_resumed(
    stored: &[Message],
    above: Seq,
    limit: usize,
    page: &Page<Message>,
) -> Vec<Violation> {
    let due = stored.iter().filter(|message| message.seq > above);
    check_page(due, limit, page, &format!("above {}", above.0))
}

/// Whoever resumes without a position gets exactly what no device of that side has, from the oldest
/// on (M4, 2.5). `stored` is all that the reader takes part in, in the order of ids.
#[must_use]
pub fn check_undelivered(
    stored: &[Message],
    reader: Side,
    limit: usize,
    page: &Page<Message>,
) -> Vec<Violation> {
    let due = stored
        .iter()
        .filter(|message| message.sender.side() != reader && !message.status.is_delivered());
    check_page(due, limit, page, "of what was not delivered")
}

fn check_page<'a>(
    due: impl Iterator<Item = &'a Message>,
    limit: usize,
    page: &Page<Message>,
    of_what: &str,
) -> Vec<Violation> {
    let due: Vec<_> = due.collect();
    let (expected, has_more) = (&due[..due.len().min(limit)], due.len() > limit);
    if page.items.iter().eq(expected.iter().copied()) && page.has_more == has_more {
        return Vec::new();
    }
    let ids = |messages: &mut dyn Iterator<Item = &Message>| -> Vec<MsgId> {
        messages.map(|message| message.msg_id).collect()
    };
    let (given, expected) = (ids(&mut page.items.iter()), ids(&mut expected.iter().copied()));
    vec![Violation::new(format!(
        "{given:?} (more: {}) is handed out {of_what} instead of {expected:?} (more: {has_more})",
        page.has_more
    ))]
}

/// What a device holds is stored as it holds it, but for a status that went on: however it came there,
/// by push, answer or page, and whatever was lost on the way (A1, M2).
#[must_use]
pub fn check_held<'a>(
    stored: &[Message],
    held: impl IntoIterator<Item = &'a Message>,
) -> Vec<Violation> {
    let differs = |message: &&Message| {
        let row = stored.iter().find(|row| row.msg_id == message.msg_id);
        row.is_none_or(|row| Message { status: message.status, ..row.clone() } != **message)
    };
    let unlike = held.into_iter().filter(differs);
    unlike.map(|held| Violation::new(format!("{held:?} is held, and stored otherwise"))).collect()
}

/// Every message is by the session's user, by an agent who owned it at some time, or by kefu itself
/// (A3): no client names its author.
#[must_use]
pub fn check_authors(
    session: &Session,
    owners: &BTreeSet<AdminId>,
    messages: &[Message],
) -> Vec<Violation> {
    let is_foreign = |message: &&Message| match &message.sender {
        Sender::User(user) => *user != session.user.user_id,
        Sender::Agent(admin) => !owners.contains(admin),
        Sender::System | Sender::Bot => false,
    };
    let foreign = messages.iter().filter(is_foreign);
    foreign.map(|message| Violation::new(format!("{message:?} is by a stranger"))).collect()
}

/// Nothing counts as delivered that no device of its receiver acknowledged (M3).
#[must_use]
pub fn check_acknowledged(stored: &[Message], acknowledged: &BTreeSet<MsgId>) -> Vec<Violation> {
    let claimed = stored
        .iter()
        .filter(|message| message.status.is_delivered() && !acknowledged.contains(&message.msg_id));
    claimed
        .map(|message| Violation::new(format!("{message:?} was acknowledged by nobody")))
        .collect()
}

/// A person is told only of sessions that are theirs, and only what their side may know: a visitor
/// no offers, notes, lines or loads, an agent nothing more of a session that was taken away (A3).
///
/// `theirs` are the sessions they took part in at some time during these pushes, which are in the
/// order in which they left.
#[must_use]
pub fn check_told(to: &Person, theirs: &BTreeSet<SessionId>, pushes: &[Push]) -> Vec<Violation> {
    let mut removed = BTreeSet::new();
    let mut found = Vec::new();
    for push in pushes {
        let about = session_of(push);
        if let Push::SessionNew(offer) = push {
            removed.remove(&offer.session_id);
        }
        if !is_for(to, push) {
            found.push(Violation::new(format!("{to} is told what is not for that side: {push:?}")));
        }
        if about.is_some_and(|session| !theirs.contains(&session)) {
            found.push(Violation::new(format!("{to} is told of another's session: {push:?}")));
        }
        if about.is_some_and(|session| removed.contains(&session)) {
            found.push(Violation::new(format!("{to} is told of a session taken away: {push:?}")));
        }
        if let Push::SessionRemoved { session_id, .. } = push {
            removed.insert(*session_id);
        }
    }
    found
}

fn session_of(push: &Push) -> Option<SessionId> {
    match push {
        Push::Message { message, .. } => Some(message.session_id),
        Push::Read { session_id, .. }
        | Push::Page { session_id, .. }
        | Push::PeerAck { session_id, .. }
        | Push::Typing { session_id, .. }
        | Push::Assigned { session_id, .. }
        | Push::Ended { session_id, .. }
        | Push::Rated { session_id, .. }
        | Push::Requeued { session_id, .. }
        | Push::QueuePosition { session_id, .. }
        | Push::SessionRemoved { session_id, .. } => Some(*session_id),
        Push::SessionNew(offer) => Some(offer.session_id),
        // Whoever may read the session is told of its notes, and supervisors of what they watch.
        Push::OfflineNotice
        | Push::QueueList { .. }
        | Push::AgentStatus { .. }
        | Push::WatchedTyping { .. }
        | Push::Board(_)
        | Push::Note { .. } => None,
    }
}

/// Whether a push is of a kind, and a direction, that the person's side may see.
fn is_for(to: &Person, push: &Push) -> bool {
    let side = match to {
        Person::User(_) => Side::User,
        Person::Agent(_) => Side::Agent,
    };
    match push {
        Push::Message { message, own, .. } => (message.sender.side() == side) == *own,
        Push::PeerAck { side: told, .. } => *told == side,
        Push::Typing { .. } | Push::Ended { .. } | Push::Read { .. } => true,
        Push::Assigned { .. }
        | Push::Requeued { .. }
        | Push::OfflineNotice
        | Push::QueuePosition { .. } => side == Side::User,
        Push::SessionNew(_)
        | Push::Rated { .. }
        | Push::SessionRemoved { .. }
        | Push::QueueList { .. }
        | Push::AgentStatus { .. }
        | Push::WatchedTyping { .. }
        | Push::Page { .. }
        | Push::Board(_)
        | Push::Note { .. } => side == Side::Agent,
    }
}
