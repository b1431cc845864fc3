//! The arrows between crates (docs/architecture.md) and the external crates that stay in few hands.

use crate::workspace::{Dependency, Kind, Member};

/// What a crate may use of the workspace.
enum Reach {
    Only(&'static [&'static str]),
    /// The domain crates and these.
    DomainAnd(&'static [&'static str]),
    /// Every crate above it in the table.
    Above,
}

use Reach::{Above, DomainAnd, Only};

struct Row {
    name: &'static str,
    may_use: Reach,
}

const fn row(name: &'static str, may_use: Reach) -> Row {
    Row { name, may_use }
}

/// `core` to `desk`.
const DOMAIN: [&str; 10] = [
    "kefu-core",
    "kefu-events",
    "kefu-session",
    "kefu-presence",
    "kefu-queue",
    "kefu-assignment",
    "kefu-upload",
    "kefu-console",
    "kefu-messaging",
    "kefu-desk",
];

/// The table of docs/architecture.md. A crate may use only crates above its own row.
const TABLE: [Row; 26] = [
    row("kefu-core", Only(&[])),
    row("kefu-events", Only(&["kefu-core"])),
    row("kefu-session", Only(&["kefu-core", "kefu-events"])),
    row("kefu-presence", Only(&["kefu-core", "kefu-events"])),
    row("kefu-queue", Only(&["kefu-core", "kefu-events", "kefu-session"])),
    row(
        "kefu-assignment",
        Only(&["kefu-core", "kefu-events", "kefu-session", "kefu-presence", "kefu-queue"]),
    ),
    row("kefu-upload", Only(&["kefu-core", "kefu-events", "kefu-session"])),
    row("kefu-console", Only(&["kefu-core", "kefu-events", "kefu-session"])),
    row(
        "kefu-messaging",
        Only(&["kefu-core", "kefu-events", "kefu-session", "kefu-upload", "kefu-console"]),
    ),
    row("kefu-desk", DomainAnd(&[])),
    row("kefu-memory", DomainAnd(&[])),
    row("kefu-testkit", DomainAnd(&[])),
    row("kefu-migrations", Only(&[])),
    row("kefu-protocol", DomainAnd(&[])),
    row("kefu-entities", DomainAnd(&[])),
    row("kefu-postgres", DomainAnd(&["kefu-entities", "kefu-migrations"])),
    row("kefu-sqlite", DomainAnd(&["kefu-entities", "kefu-migrations"])),
    row("kefu-redis", DomainAnd(&[])),
    row("kefu-web", Only(&[])),
    row("kefu-gateway", DomainAnd(&["kefu-protocol", "kefu-web"])),
    row("kefu-app", Above),
    row("kefu-proptests", Above),
    row("gateway", Only(&["kefu-app"])),
    row("queue-drainer", Only(&["kefu-app"])),
    row("loadgen", Only(&[])),
    row("xtask", Only(&["kefu-testkit"])),
];

/// Test support, which any crate may use from `tests/`, `examples/` and doctests.
const TEST_SUPPORT: [&str; 2] = ["kefu-memory", "kefu-testkit"];

fn position(name: &str) -> Option<usize> {
    TABLE.iter().position(|row| row.name == name)
}

fn may_use(user: usize, used: &str) -> bool {
    let above = position(used).is_some_and(|used| used < user);
    above
        && match TABLE[user].may_use {
            Only(names) => names.contains(&used),
            DomainAnd(names) => DOMAIN.contains(&used) || names.contains(&used),
            Above => true,
        }
}

/// Tests of a binary are end to end and may see every crate; others see their row and the test
/// support.
fn tests_may_use(user: &Member, position: usize, used: &str) -> bool {
    is_binary(user) || TEST_SUPPORT.contains(&used) || may_use(position, used)
}

fn is_binary(member: &Member) -> bool {
    member.folder.starts_with("bins/")
}

/// Uses of a workspace crate that the table does not allow.
pub(crate) fn forbidden_edges(members: &[Member]) -> Vec<String> {
    let is_member = |name: &str| members.iter().any(|member| member.name == name);
    let mut complaints = Vec::new();
    for user in members {
        let Some(row) = position(&user.name) else { continue };
        for Dependency { name: used, kind } in &user.dependencies {
            let allowed = match kind {
                Kind::Arrow => may_use(row, used),
                Kind::Development => tests_may_use(user, row, used),
            };
            if is_member(used) && !allowed {
                complaints.push(format!(
                    "{} must not use {used}; an arrow against docs/architecture.md makes a crate \
                     impossible to embed or replace on its own",
                    user.name
                ));
            }
        }
    }
    complaints
}

/// Crates without a row, and rows without a crate.
pub(crate) fn table_errors(members: &[Member]) -> Vec<String> {
    let unknown = members.iter().filter(|member| position(&member.name).is_none()).map(|member| {
        format!(
            "{} has no row; decide what it may use, add it to the table in docs/architecture.md \
             and to TABLE in bins/xtask/tests/tidy/arrow.rs, because an undecided crate soon uses \
             everything",
            member.name
        )
    });
    let stale = TABLE.iter().filter(|row| !members.iter().any(|member| member.name == row.name));
    let stale = stale.map(|row| {
        format!("{} has a row but no crate; remove the row, because it rules nothing", row.name)
    });
    unknown.chain(stale).collect()
}

/// An external crate that only some crates may use outside their tests.
struct Restriction {
    external: &'static [&'static str],
    users: &'static [&'static str],
    reason: &'static str,
}

const RESTRICTIONS: [Restriction; 4] = [
    Restriction {
        external: &["sea-orm", "sea-orm-migration", "sqlx"],
        users: &[
            "kefu-migrations",
            "kefu-entities",
            "kefu-postgres",
            "kefu-sqlite",
            "kefu-proptests",
        ],
        reason: "SQL types never cross an adapter's edge",
    },
    Restriction {
        external: &["fred"],
        users: &["kefu-redis"],
        reason: "the client library is little maintained: it stays where it can be swapped",
    },
    Restriction {
        external: &["axum"],
        users: &["kefu-gateway", "kefu-app"],
        reason: "what is embedded elsewhere brings no web server along",
    },
    Restriction {
        external: &["anyhow"],
        users: &["kefu-app", "gateway", "xtask", "loadgen"],
        reason: "a library's errors are typed, so that its callers can match on them",
    },
];

/// Everything that `kefu-core` may use.
const CORE_USES: [&str; 2] = ["serde", "thiserror"];

/// Uses of an external crate outside the crates it is restricted to.
pub(crate) fn forbidden_externals(members: &[Member]) -> Vec<String> {
    let mut complaints = Vec::new();
    for member in members {
        let arrows = member.dependencies.iter().filter(|used| used.kind == Kind::Arrow);
        for Dependency { name: used, .. } in arrows {
            if let Some(reason) = restriction(&member.name, used) {
                complaints.push(format!("{} must not use {used}; {reason}", member.name));
            }
        }
    }
    complaints
}

fn restriction(user: &str, used: &str) -> Option<&'static str> {
    if user == "kefu-core" && !CORE_USES.contains(&used) {
        return Some("the vocabulary that everything shares stays free of I/O and quick to build");
    }
    RESTRICTIONS
        .iter()
        .find(|rule| rule.external.contains(&used) && !rule.users.contains(&user))
        .map(|rule| rule.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, folder: &str, dependencies: &[(&str, Kind)]) -> Member {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind })
            .collect();
        Member {
            name: name.to_owned(),
            folder: folder.to_owned(),
            description: String::new(),
            manifest: String::new(),
            dependencies,
        }
    }

    /// `user` beside a world in which every crate of the table exists.
    fn edges_of(user: Member) -> Vec<String> {
        let others = TABLE.iter().filter(|row| row.name != user.name);
        let mut members: Vec<_> = others.map(|row| member(row.name, "crates/x", &[])).collect();
        members.push(user);
        forbidden_edges(&members)
    }

    #[test]
    fn an_arrow_outside_the_row_is_refused() {
        let upward = member("kefu-session", "crates/session", &[("kefu-desk", Kind::Arrow)]);
        assert_eq!(edges_of(upward).len(), 1);
        let adapter = member("kefu-gateway", "crates/gateway", &[("kefu-sqlite", Kind::Arrow)]);
        assert_eq!(edges_of(adapter).len(), 1);
        let itself = member("kefu-app", "crates/app", &[("gateway", Kind::Arrow)]);
        assert_eq!(edges_of(itself).len(), 1);
        let allowed = member("kefu-session", "crates/session", &[("kefu-events", Kind::Arrow)]);
        assert!(edges_of(allowed).is_empty());
    }

    #[test]
    fn tests_may_add_the_test_support_only() {
        let support = member("kefu-core", "crates/core", &[("kefu-memory", Kind::Development)]);
        assert!(edges_of(support).is_empty());
        let as_arrow = member("kefu-session", "crates/session", &[("kefu-memory", Kind::Arrow)]);
        assert_eq!(edges_of(as_arrow).len(), 1);
        let adapter = member("kefu-desk", "crates/desk", &[("kefu-sqlite", Kind::Development)]);
        assert_eq!(edges_of(adapter).len(), 1);
        let whole = member("gateway", "bins/gateway", &[("kefu-protocol", Kind::Development)]);
        assert!(edges_of(whole).is_empty());
    }

    #[test]
    fn an_unknown_crate_and_a_stale_row_are_told() {
        let complaints = table_errors(&[member("kefu-new", "crates/new", &[])]);
        assert!(complaints[0].contains("kefu-new has no row"));
        assert_eq!(complaints.len(), 1 + TABLE.len());
    }

    #[test]
    fn the_table_only_points_upward() {
        for (user, row) in TABLE.iter().enumerate() {
            if let Only(names) | DomainAnd(names) = row.may_use {
                assert!(names.iter().all(|used| may_use(user, used)), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_restricted_external_crate_is_refused_elsewhere() {
        let complaints = |name, used| {
            forbidden_externals(&[member(name, "crates/x", &[(used, Kind::Arrow)])]).len()
        };
        assert_eq!(complaints("kefu-desk", "sea-orm"), 1);
        assert_eq!(complaints("kefu-sqlite", "sea-orm"), 0);
        assert_eq!(complaints("kefu-desk", "fred"), 1);
        assert_eq!(complaints("kefu-redis", "fred"), 0);
        assert_eq!(complaints("kefu-messaging", "axum"), 1);
        assert_eq!(complaints("kefu-messaging", "anyhow"), 1);
        assert_eq!(complaints("kefu-core", "tokio"), 1);
        assert_eq!(complaints("kefu-core", "serde"), 0);
        let in_tests = member("kefu-desk", "crates/desk", &[("anyhow", Kind::Development)]);
        assert!(forbidden_externals(&[in_tests]).is_empty());
    }
}
