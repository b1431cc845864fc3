//! `cg_chat_indexed` and `cg_chat_term`.

use std::collections::{BTreeMap, BTreeSet};

use kefu_core::{Seq, SessionId, Timestamp};
use kefu_messaging::{Progress, SearchEntry, SearchQuery};

/// The words of sessions, and how far each session is among them.
#[derive(Default)]
pub(crate) struct SearchTable {
    progress: BTreeMap<SessionId, Progress>,
    entries: BTreeMap<SessionId, BTreeMap<i64, BTreeSet<String>>>,
}

impl SearchTable {
    /// A session is there with everything missing from its beginning.
    pub(crate) fn begin(&mut self, session_id: SessionId, at: Timestamp) {
        let none = Progress { session_id, upto: Seq(0), is_final: false, at };
        self.progress.entry(session_id).or_insert(none);
    }

    /// Everything that is not final, by session.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Progress> {
        self.progress.values().filter(|progress| !progress.is_final)
    }

    pub(crate) fn fits(&self, session: SessionId, query: &SearchQuery) -> bool {
        let mut parts = self.entries.get(&session).into_iter().flat_map(BTreeMap::values);
        parts.any(|words| query.fits(words))
    }

    pub(crate) fn write(&mut self, entries: &[SearchEntry], progress: &[Progress]) {
        let mut accepted = BTreeSet::new();
        for next in progress {
            let Some(known) = self.progress.get_mut(&next.session_id) else { continue };
            if !known.is_final && known.upto <= next.upto {
                *known = *next;
                accepted.insert(next.session_id);
            }
        }
        for entry in entries.iter().filter(|entry| accepted.contains(&entry.session_id)) {
            let parts = self.entries.entry(entry.session_id).or_default();
            parts.insert(entry.part, entry.words.clone());
        }
    }
}
