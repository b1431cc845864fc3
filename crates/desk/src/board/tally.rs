//! The board's own account of sessions, kept from events; what it lacks is put right by a reading.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use kefu_console::{BOARD_MINUTES, BoardAgent, BoardFigures, Percentiles};
use kefu_core::snowflake::timestamp_of;
use kefu_core::{AdminId, SessionId, Timestamp};
use kefu_events::Event;
use kefu_messaging::OpenedSession;
use kefu_presence::{Agent, Availability};
use kefu_session::{Session, Status};

const MINUTE_MS: i64 = 60_000;

/// What the figures are made of.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Since when each waiting session waits.
    waiting: BTreeMap<SessionId, Timestamp>,
    /// The newest version known of each session, so that a late event takes nothing back.
    versions: HashMap<SessionId, i64>,
    /// The sessions of the last hour.
    opened: BTreeMap<SessionId, OpenedSession>,
    agents: BTreeMap<AdminId, BoardAgent>,
    /// Agents whose row an event has changed since it was read.
    stale: BTreeSet<AdminId>,
}

impl Tally {
    /// The account of what was read.
    pub(super) fn read(open: &[Session], opened: Vec<OpenedSession>, agents: &[Agent]) -> Self {
        let waiting = open.iter().filter(|session| session.status == Status::Waiting);
        Self {
            waiting: waiting.map(|session| (session.id, session.queued_at)).collect(),
            versions: open.iter().map(|session| (session.id, session.version)).collect(),
            opened: opened.into_iter().map(|opened| (opened.session_id, opened)).collect(),
            agents: agents.iter().filter_map(shown).collect(),
            stale: BTreeSet::new(),
        }
    }

    /// Takes what happened at `time`; whether it is of any concern.
    pub(super) fn apply(&mut self, event: &Event, time: Timestamp) -> bool {
        match event {
            Event::SessionOpened { session_id, version, .. } => {
                let opened = OpenedSession { session_id: *session_id, at: time, first_reply: None };
                self.opened.entry(*session_id).or_insert(opened);
                self.moved(*session_id, *version, Some(time));
            }
            Event::SessionAssigned { session_id, admin_id, from, version, .. } => {
                self.stale.insert(admin_id.clone());
                self.stale.extend(from.clone());
                self.moved(*session_id, *version, None);
            }
            Event::SessionRequeued { session_id, from, version, .. } => {
                self.stale.insert(from.clone());
                // It keeps its waiting time (Z7), which began when it was opened.
                let opened = self.opened.get(session_id).map(|opened| opened.at);
                let since = opened.unwrap_or_else(|| timestamp_of(session_id.get()));
                self.moved(*session_id, *version, Some(since));
            }
            Event::SessionEnded { session_id, admin_id, version, .. } => {
                self.stale.extend(admin_id.clone());
                self.moved(*session_id, *version, None);
            }
            Event::AgentChanged { admin_id, .. } => {
                self.stale.insert(admin_id.clone());
            }
            Event::SessionRated { .. } | Event::MessageStored { .. } | Event::NoteAdded { .. } => {
                return false;
            }
        }
        true
    }

    /// An agent wrote in a session; whether that was the first word.
    pub(super) fn replied(&mut self, session: SessionId, at: Timestamp) -> bool {
        let Some(opened) = self.opened.get_mut(&session) else { return false };
        let is_first = opened.first_reply.is_none_or(|known| at < known);
        if is_first {
            opened.first_reply = Some(at);
        }
        is_first
    }

    /// The agents whose rows are to be read again.
    pub(super) fn take_stale(&mut self) -> BTreeSet<AdminId> {
        std::mem::take(&mut self.stale)
    }

    /// These have to be read after all.
    pub(super) fn put_back(&mut self, stale: BTreeSet<AdminId>) {
        self.stale.extend(stale);
    }

    /// An agent's row was read.
    pub(super) fn saw(&mut self, agent: &Agent) {
        self.agents.remove(&agent.info.admin_id);
        self.agents.extend(shown(agent));
    }

    /// What the board shows at `now`.
    pub(super) fn figures(&mut self, now: Timestamp) -> BoardFigures {
        let this_minute = now.0.div_euclid(MINUTE_MS);
        let age = |at: Timestamp| this_minute - at.0.div_euclid(MINUTE_MS);
        let minutes = i64::try_from(BOARD_MINUTES).unwrap_or(i64::MAX);
        self.opened.retain(|_, opened| age(opened.at) < minutes);
        let mut arrivals = [0; BOARD_MINUTES];
        for opened in self.opened.values() {
            // A clock that is behind counts for now.
            let age = usize::try_from(age(opened.at)).unwrap_or(0);
            if let Some(minute) = arrivals.iter_mut().rev().nth(age) {
                *minute += 1;
            }
        }
        let replies = self
            .opened
            .values()
            .filter_map(|opened| opened.first_reply.map(|first| first.since(opened.at)));
        let longest = self.waiting.values().min().map(|since| now.since(*since));
        BoardFigures {
            time: now,
            waiting: self.waiting.len(),
            longest_wait: longest.unwrap_or(Duration::ZERO),
            agents: self.agents.values().cloned().collect(),
            arrivals,
            first_response: Percentiles::of(replies.collect()),
        }
    }

    /// From `version` on the session waits since then, or does not wait.
    fn moved(&mut self, session: SessionId, version: i64, waits_since: Option<Timestamp>) {
        let known = self.versions.entry(session).or_insert(0);
        if *known >= version {
            return;
        }
        *known = version;
        match waits_since {
            Some(since) => self.waiting.insert(session, since),
            None => self.waiting.remove(&session),
        };
    }
}

/// Who is on the board: the others are at home.
fn shown(agent: &Agent) -> Option<(AdminId, BoardAgent)> {
    let online = agent.availability == Availability::Online && agent.live;
    (online || agent.active_sessions > 0).then(|| {
        let entry = BoardAgent {
            admin_id: agent.info.admin_id.clone(),
            name: agent.info.name.clone(),
            online,
            active_sessions: agent.active_sessions,
            max_sessions: agent.max_sessions,
        };
        (agent.info.admin_id.clone(), entry)
    })
}
