//! What every client knows at the end, against the tables: nothing acked is missing, doubled or out of
//! order, and nothing stored was kept from anybody.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Result, ensure};

/// A stored message.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) msg_id: i64,
    pub(crate) seq: i64,
    pub(crate) key: String,
    pub(crate) create_time: i64,
}

/// What one client knows at the end.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) name: String,
    pub(crate) session: String,
    /// Keys in the order in which they were first sent.
    pub(crate) sent: Vec<String>,
    /// What the server acknowledged: id and position by key.
    pub(crate) acked: HashMap<String, (i64, i64)>,
    /// Ids and positions of the other side's messages, in the order in which they were first seen.
    pub(crate) seen: Vec<(i64, i64)>,
    /// Pushes of a message seen before: retries and resumes.
    pub(crate) seen_again: usize,
    /// Connections that were lost.
    pub(crate) breaks: usize,
}

/// The sums over all clients.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) acked: usize,
    pub(crate) stored: usize,
    pub(crate) missing: usize,
    pub(crate) duplicate: usize,
    pub(crate) out_of_order: usize,
    pub(crate) gaps: usize,
    /// Stored, and never seen by the other side.
    pub(crate) unseen: usize,
    pub(crate) seen_again: usize,
    pub(crate) breaks: usize,
}

impl Report {
    /// Compares; `rows` are the messages of each session by position.
    pub(crate) fn of(ledgers: &[Ledger], rows: &BTreeMap<String, Vec<Row>>) -> Self {
        let mut report = Self::default();
        for messages in rows.values() {
            report.stored += messages.len();
            let keys: HashSet<_> = messages.iter().map(|row| row.key.as_str()).collect();
            report.duplicate += messages.len() - keys.len();
            report.gaps += messages.iter().zip(1..).filter(|(row, seq)| row.seq != *seq).count();
            let ordered = |pair: &[Row]| {
                pair[0].msg_id < pair[1].msg_id && pair[0].create_time <= pair[1].create_time
            };
            report.out_of_order += messages.windows(2).filter(|pair| !ordered(pair)).count();
        }
        let none = Vec::new();
        for ledger in ledgers {
            report.check(ledger, rows.get(&ledger.session).unwrap_or(&none));
        }
        report
    }

    fn check(&mut self, ledger: &Ledger, rows: &[Row]) {
        let by_key: HashMap<_, _> = rows.iter().map(|row| (row.key.as_str(), row)).collect();
        self.acked += ledger.acked.len();
        self.seen_again += ledger.seen_again;
        self.breaks += ledger.breaks;
        for (key, answer) in &ledger.acked {
            let found = by_key.get(key.as_str());
            let same = found.is_some_and(|row| (row.msg_id, row.seq) == *answer);
            self.missing += usize::from(!same);
        }
        let seqs: Vec<_> =
            ledger.sent.iter().filter_map(|key| by_key.get(key.as_str())).map(|r| r.seq).collect();
        self.out_of_order += seqs.windows(2).filter(|pair| pair[0] >= pair[1]).count();
        let stored: HashSet<_> = rows.iter().map(|row| row.msg_id).collect();
        self.missing += ledger.seen.iter().filter(|(id, _)| !stored.contains(id)).count();
        let own: HashSet<_> = ledger.sent.iter().map(String::as_str).collect();
        let seen: HashSet<_> = ledger.seen.iter().map(|(id, _)| *id).collect();
        let others = rows.iter().filter(|row| !own.contains(row.key.as_str()));
        self.unseen += others.filter(|row| !seen.contains(&row.msg_id)).count();
    }

    /// That nothing stored was lost, doubled or reordered.
    pub(crate) fn is_clean(&self) -> Result<()> {
        ensure!(self.acked > 0, "nothing was acknowledged: the test showed nothing");
        ensure!(self.missing == 0, "acked but missing: {self:?}");
        ensure!(self.duplicate == 0, "stored twice: {self:?}");
        ensure!(self.out_of_order == 0, "out of order: {self:?}");
        ensure!(self.gaps == 0, "a gap in seq: {self:?}");
        Ok(())
    }
}
