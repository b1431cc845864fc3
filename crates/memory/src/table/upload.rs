//! `cg_chat_upload`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kefu_core::Timestamp;
use kefu_upload::{UploadPath, UploadRow};

/// Uploads by path, and which of them no message has as its content.
#[derive(Default)]
pub(crate) struct UploadTable {
    rows: BTreeMap<UploadPath, UploadRow>,
    /// What messages have as their content, with or without a row.
    referred: HashSet<UploadPath>,
    orphans: BTreeSet<(Timestamp, UploadPath)>,
}

impl UploadTable {
    pub(crate) fn find(&self, path: &UploadPath) -> Option<&UploadRow> {
        self.rows.get(path)
    }

    /// Recorded before `created_before` and in no message, oldest first.
    pub(crate) fn orphans(&self, created_before: Timestamp) -> impl Iterator<Item = UploadPath> {
        let old = self.orphans.iter().take_while(move |(time, _)| *time < created_before);
        old.map(|(_, path)| *path)
    }

    pub(crate) fn record(&mut self, row: UploadRow) {
        if self.rows.contains_key(&row.path) {
            return;
        }
        if !self.referred.contains(&row.path) {
            self.orphans.insert((row.created_at, row.path));
        }
        self.rows.insert(row.path, row);
    }

    /// Deletes an old orphan's row; says whether there is no row now.
    pub(crate) fn forget(&mut self, path: &UploadPath, created_before: Timestamp) -> bool {
        let Some(row) = self.rows.get(path) else { return true };
        let orphan = (row.created_at, *path);
        if row.created_at >= created_before || !self.orphans.remove(&orphan) {
            return false;
        }
        self.rows.remove(path);
        true
    }

    /// Notes that a message with this content is stored.
    pub(crate) fn refer(&mut self, content: &str) {
        let Ok(path) = content.parse() else { return };
        self.referred.insert(path);
        if let Some(row) = self.rows.get(&path) {
            self.orphans.remove(&(row.created_at, path));
        }
    }
}
