//! Opening a session: the one that is open, or a new one (S1).

use kefu_core::snowflake::{EPOCH_MS, timestamp_of};
use kefu_core::{Balance, IdSource, Seq, SessionId, Timestamp, UserInfo};
use kefu_events::{Envelope, Event, EventContext};

use crate::{Session, SessionVerdict, Status, UserProfile};

/// What opening writes.
#[derive(Debug, Clone)]
pub enum OpenVerdict {
    /// The open session as it is.
    Keep(Session),
    /// The open session, still waiting, with what the new token says about its user.
    Refresh(Session),
    /// A new session, with its event.
    Insert(Session, Vec<Envelope>),
}

/// Decides what `chat.connect` with intent `consult` does, given the user's open session (S1).
#[must_use]
pub fn decide_open(
    open: Option<&Session>,
    user: &UserInfo,
    source: &str,
    ageing_per_minute: i64,
    context: &EventContext,
    ids: &dyn IdSource,
) -> OpenVerdict {
    match open {
        Some(session) => match refreshed(session, user, ageing_per_minute) {
            Some(fresh) => OpenVerdict::Refresh(fresh),
            None => OpenVerdict::Keep(session.clone()),
        },
        None => insert(user, source, ageing_per_minute, context, ids),
    }
}

/// Decides what a `chat.connect` that opens nothing does to the user's session: while it waits, its
/// balance follows the newest token.
#[must_use]
pub fn decide_refresh(
    session: &Session,
    user: &UserInfo,
    ageing_per_minute: i64,
) -> SessionVerdict {
    match refreshed(session, user, ageing_per_minute) {
        Some(fresh) => SessionVerdict::Write(fresh, Vec::new()),
        None => SessionVerdict::Keep,
    }
}

/// A waiting session with what the user's newest token says; `None` when that is nothing new.
fn refreshed(session: &Session, user: &UserInfo, ageing_per_minute: i64) -> Option<Session> {
    if session.status != Status::Waiting {
        return None;
    }
    let priority = priority(user.balance, session.queued_at, ageing_per_minute);
    let fresh = Session {
        user: profile(user),
        balance: user.balance,
        priority,
        version: session.version + 1,
        ..session.clone()
    };
    let same = fresh.user == session.user
        && fresh.balance == session.balance
        && fresh.priority == session.priority;
    (!same).then_some(fresh)
}

fn insert(
    user: &UserInfo,
    source: &str,
    ageing_per_minute: i64,
    context: &EventContext,
    ids: &dyn IdSource,
) -> OpenVerdict {
    let id = SessionId::next_after(ids, 0);
    let started_at = timestamp_of(id.get()).max(context.now);
    let session = Session {
        id,
        user: profile(user),
        status: Status::Waiting,
        admin_id: None,
        source: source.to_owned(),
        balance: user.balance,
        priority: priority(user.balance, started_at, ageing_per_minute),
        last_seq: Seq(0),
        last_msg_id: None,
        version: 1,
        started_at,
        queued_at: started_at,
        assigned_at: None,
        ended_at: None,
        ended_by: None,
        rating: None,
        noticed_at: None,
    };
    let event = Event::SessionOpened { session_id: id, user_id: user.user_id.clone(), version: 1 };
    OpenVerdict::Insert(session, vec![Envelope::new(event, context, ids)])
}

fn profile(user: &UserInfo) -> UserProfile {
    UserProfile {
        user_id: user.user_id.clone(),
        name: user.name.clone(),
        avatar: user.avatar.clone(),
        vip: user.vip,
    }
}

/// The place in the line (Q1): larger is served first; equals by session id.
///
/// Ageing adds `ageing_per_minute` minor units per minute waited. Since everybody ages at the same
/// rate, the order never changes while waiting, so it is folded in once: waiting since earlier
/// counts as having had more. Clamped to ± 2^53, what a Redis score keeps exactly.
#[must_use]
pub fn priority(balance: Option<Balance>, queued_at: Timestamp, ageing_per_minute: i64) -> i64 {
    let balance = balance.unwrap_or_default().clamped();
    let minutes = (queued_at.0 - EPOCH_MS) / 60_000;
    let aged = balance.0.saturating_sub(ageing_per_minute.saturating_mul(minutes));
    Balance(aged).clamped().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_ageing_priority_is_the_balance() {
        assert_eq!(priority(Some(Balance(500)), Timestamp(EPOCH_MS + 60_000_000), 0), 500);
        assert_eq!(priority(None, Timestamp(EPOCH_MS), 0), 0);
        assert_eq!(priority(Some(Balance(i64::MAX)), Timestamp(EPOCH_MS), 0), Balance::MAX);
    }

    #[test]
    fn ten_minutes_at_ten_a_minute_outweigh_a_hundred() {
        let early = priority(Some(Balance(0)), Timestamp(EPOCH_MS), 10);
        let late = priority(Some(Balance(99)), Timestamp(EPOCH_MS + 600_000), 10);
        assert!(early > late);
    }
}
