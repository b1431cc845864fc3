//! Up to which position a connection has been given each of its sessions (M5).

use kefu_core::{Seq, SessionId};

/// Positions above a gap that are remembered; beyond it the gap is healed from the store anyway.
const AHEAD: usize = 64;

/// The highest contiguous position per session. A visitor has one session, an agent a handful.
#[derive(Debug, Default)]
pub(crate) struct Served {
    sessions: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    session: SessionId,
    /// `None` until the connection pulled what its connect answer left out.
    upto: Option<Seq>,
    ahead: Vec<Seq>,
}

impl Served {
    /// The connection takes part in `session`; how far it has it shows later.
    pub(crate) fn follow(&mut self, session: SessionId) {
        if self.line(session).is_none() {
            self.sessions.push(Line { session, upto: None, ahead: Vec::new() });
        }
    }

    /// A session of the connection's person was opened elsewhere: if it is new here, the connection has
    /// nothing of it yet.
    pub(crate) fn open(&mut self, session: SessionId) {
        if self.line(session).is_none() {
            self.start(session, Seq(0));
        }
    }

    /// The connection takes part in `session` and has everything of it up to `upto`.
    pub(crate) fn start(&mut self, session: SessionId, upto: Seq) {
        self.follow(session);
        self.catch_up(session, upto);
    }

    /// The connection has everything of `session` up to `upto`. What it merely read, without taking
    /// part in it, is not followed (A3).
    pub(crate) fn catch_up(&mut self, session: SessionId, upto: Seq) {
        let Some(line) = self.line(session) else { return };
        line.upto = line.upto.max(Some(upto));
        line.close_gap();
    }

    /// One message of `session` goes to the connection.
    pub(crate) fn note(&mut self, session: SessionId, seq: Seq) {
        let Some(line) = self.line(session) else { return };
        if Some(seq) > line.upto && !line.ahead.contains(&seq) && line.ahead.len() < AHEAD {
            line.ahead.push(seq);
        }
        line.close_gap();
    }

    /// The session is no longer this connection's.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.sessions.retain(|line| line.session != session);
    }

    pub(crate) fn positions(&self) -> Vec<(SessionId, Seq)> {
        self.sessions.iter().filter_map(|line| Some((line.session, line.upto?))).collect()
    }

    fn line(&mut self, session: SessionId) -> Option<&mut Line> {
        self.sessions.iter_mut().find(|line| line.session == session)
    }
}

impl Line {
    fn close_gap(&mut self) {
        let Some(upto) = &mut self.upto else { return };
        self.ahead.sort_unstable();
        self.ahead.retain(|seq| {
            if *seq == upto.next() {
                *upto = *seq;
            }
            *seq > *upto
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_holds_the_position_until_it_is_filled() {
        let session = SessionId::new(1).expect("positive");
        let mut served = Served::default();
        served.note(session, Seq(1));
        assert!(served.positions().is_empty(), "not started");
        served.start(session, Seq(3));
        served.note(session, Seq(6));
        served.note(session, Seq(5));
        assert_eq!(served.positions(), [(session, Seq(3))]);
        served.note(session, Seq(4));
        assert_eq!(served.positions(), [(session, Seq(6))]);
        served.forget(session);
        assert!(served.positions().is_empty());
    }

    #[test]
    fn only_what_the_connection_takes_part_in_is_followed() {
        let session = SessionId::new(1).expect("positive");
        let mut served = Served::default();
        served.catch_up(session, Seq(3));
        assert!(served.positions().is_empty(), "A3: a supervisor read its history");
        served.follow(session);
        served.note(session, Seq(4));
        assert!(served.positions().is_empty(), "more is to be pulled");
        served.catch_up(session, Seq(3));
        assert_eq!(served.positions(), [(session, Seq(4))]);
    }
}
