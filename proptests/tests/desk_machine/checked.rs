//! What is held against what is stored, after every step and of every answer.

use std::collections::BTreeMap;

use kefu_core::limit::PAGE;
use kefu_core::{ConnId, Page, Seq, SessionId};
use kefu_desk::ConnectAnswer;
use kefu_messaging::invariant::{
    check_acknowledged, check_authors, check_held, check_resumed, check_told, check_undelivered,
};
use kefu_messaging::{Push, Side};
use kefu_proptests::model::became;
use kefu_proptests::model::visits::AGENTS;
use kefu_session::invariant::{Violation, check_succession};
use kefu_testkit::check::Ledger;

use super::{Scene, admin, takes_part, visitor};

impl Scene {
    /// Exactly what is above the position, or was not delivered, with the session as it stands, and
    /// nothing of the agents' side.
    pub(super) fn check_answer(
        &mut self,
        number: usize,
        answer: &ConnectAnswer,
        position: Option<(SessionId, Seq)>,
    ) {
        let page = Page { items: answer.unread.clone(), has_more: answer.has_more };
        let limit = PAGE as usize;
        let found = match position {
            Some((session, above)) => check_resumed(&self.stored(session), above, limit, &page),
            None => {
                let mut all: Vec<_> = self.sessions_of(&visitor(number).person());
                all.sort();
                let all: Vec<_> = all.into_iter().flat_map(|id| self.stored(id)).collect();
                check_undelivered(&all, Side::User, limit, &page)
            }
        };
        self.found.extend(found);
        assert!(answer.owned.is_empty() && answer.agent.is_none(), "a console's answer");
        let open = self.open_of(number);
        assert_eq!(answer.session_id, open.as_ref().map(|session| session.id), "the open session");
        if let (Some(view), Some(stored)) = (&answer.session, open) {
            self.found.extend(check_succession(&view.session, &stored));
        }
    }

    /// Reads everything and checks it.
    pub(super) fn settle(&mut self) {
        let pushed = self.house.hear();
        let admins = (0..AGENTS).map(admin);
        let ledger = Ledger::collect(&self.house.stores, self.sessions.iter().copied(), admins);
        let now = self.house.wait(ledger).expect("memory");
        self.found.extend(now.violations_but_caps());
        self.found.extend(became(&self.before, &now));
        self.check_told(&now, &pushed);
        self.check_rows(&now);
        self.check_devices(&now);
        self.before = now;
    }

    fn check_told(&mut self, now: &Ledger, pushed: &[(ConnId, Push)]) {
        let mut by_conn: BTreeMap<ConnId, Vec<Push>> = BTreeMap::new();
        for (conn, push) in pushed {
            by_conn.entry(*conn).or_default().push(push.clone());
        }
        for (conn, pushes) in by_conn {
            let Some(device) = self.house.devices.get(&conn) else { continue };
            let person = device.caller.person();
            let rows = self.before.sessions.iter().chain(&now.sessions);
            let theirs = rows.filter(|session| takes_part(session, &person));
            let theirs = theirs.map(|session| session.id).collect();
            self.found.extend(check_told(&person, &theirs, &pushes));
        }
    }

    fn check_rows(&mut self, now: &Ledger) {
        for session in &now.sessions {
            let records = &now.records[&session.id];
            let owners = records.iter().filter_map(|record| record.admin_id.clone()).collect();
            let messages = &now.messages[&session.id];
            self.found.extend(check_authors(session, &owners, messages));
            self.found.extend(check_acknowledged(messages, &self.acknowledged));
        }
    }

    /// What a device has is what is stored, and one that hears has all since it connected.
    fn check_devices(&mut self, now: &Ledger) {
        let all: Vec<_> = now.messages.values().flatten().cloned().collect();
        for (conn, device) in &self.house.devices {
            self.found.extend(check_held(&all, device.held.values()));
            for (session, since) in device.since.iter().filter(|_| !device.is_deaf) {
                let row = now.sessions.iter().find(|row| row.id == *session);
                if !row.is_some_and(|row| takes_part(row, &device.caller.person())) {
                    continue;
                }
                let later = now.messages[session].iter().filter(|message| message.seq > *since);
                let missing = later.filter(|message| !device.held.contains_key(&message.msg_id));
                self.found.extend(missing.map(|message| {
                    Violation::new(format!("{conn:?} hears and misses {message:?}"))
                }));
            }
        }
    }
}
