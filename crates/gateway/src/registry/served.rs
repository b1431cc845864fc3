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
    upto: Seq,
    ahead: Vec<Seq>,
}

impl Served {
    /// The connection has everything of `session` up to `upto`.
    pub(crate) fn start(&mut self, session: SessionId, upto: Seq) {
        match self.line(session) {
            Some(line) => {
                line.upto = line.upto.max(upto);
                line.close_gap();
            }
            None => self.sessions.push(Line { session, upto, ahead: Vec::new() }),
        }
    }

    /// One message of `session` goes to the connection. Sessions never started are not followed.
    pub(crate) fn note(&mut self, session: SessionId, seq: Seq) {
        let Some(line) = self.line(session) else { return };
        if seq > line.upto && !line.ahead.contains(&seq) && line.ahead.len() < AHEAD {
            line.ahead.push(seq);
        }
        line.close_gap();
    }

    /// The session is no longer this connection's.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.sessions.retain(|line| line.session != session);
    }

    pub(crate) fn positions(&self) -> Vec<(SessionId, Seq)> {
        self.sessions.iter().map(|line| (line.session, line.upto)).collect()
    }

    fn line(&mut self, session: SessionId) -> Option<&mut Line> {
        self.sessions.iter_mut().find(|line| line.session == session)
    }
}

impl Line {
    fn close_gap(&mut self) {
        let upto = &mut self.upto;
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
}
