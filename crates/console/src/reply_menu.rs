//! The order in which canned replies are offered.

use crate::{CannedReply, Shelf};

/// How well a reply fits what was typed; the smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    ShortcutBegins,
    NameContains,
    ContentContains,
}

/// The replies that fit `query`, best first. Case does not matter, nor a `/` in front. An empty query fits all.
///
/// Those whose shortcut begins with it come first, then those whose shortcut or title contains it, then those
/// whose content does; within each by shortcut, one's own before the team's.
#[must_use]
pub fn find_replies(replies: Vec<CannedReply>, query: &str) -> Vec<CannedReply> {
    let query = query.trim();
    let query = query.strip_prefix('/').unwrap_or(query).to_lowercase();
    let mut found: Vec<_> =
        replies.into_iter().filter_map(|reply| Some((fit(&reply, &query)?, reply))).collect();
    found.sort_by(|(fit_a, a), (fit_b, b)| {
        let key = |reply: &CannedReply| (reply.shortcut.to_lowercase(), is_team(reply), reply.id);
        fit_a.cmp(fit_b).then_with(|| key(a).cmp(&key(b)))
    });
    found.into_iter().map(|(_, reply)| reply).collect()
}

fn fit(reply: &CannedReply, query: &str) -> Option<Fit> {
    let shortcut = reply.shortcut.to_lowercase();
    if shortcut.starts_with(query) {
        return Some(Fit::ShortcutBegins);
    }
    if shortcut.contains(query) || reply.title.to_lowercase().contains(query) {
        return Some(Fit::NameContains);
    }
    reply.content.to_lowercase().contains(query).then_some(Fit::ContentContains)
}

const fn is_team(reply: &CannedReply) -> bool {
    matches!(reply.shelf, Shelf::Team)
}
