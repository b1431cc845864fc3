//! What the documents must say, and that their links lead somewhere.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::workspace::{Member, TextFile};

const ARCHITECTURE: &str = "docs/architecture.md";
const OPERATIONS: &str = "docs/operations.md";
const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];
const COMMANDS: [&str; 2] = ["cargo run --release --bin gateway", "cargo xtask test"];

fn find<'a>(documents: &'a [TextFile], path: &str) -> Option<&'a str> {
    documents.iter().find(|document| document.path == path).map(|document| document.text.as_str())
}

/// Crates that the architecture document does not name, by folder or by package.
pub(crate) fn unnamed_crates(members: &[Member], documents: &[TextFile]) -> Vec<String> {
    let Some(text) = find(documents, ARCHITECTURE) else {
        return vec![format!(
            "{ARCHITECTURE} is missing; write it, because the tree is only readable with its map"
        )];
    };
    members
        .iter()
        .filter(|member| !is_named(member, text))
        .map(|member| {
            format!(
                "{} is not named (as `{}` or `{}`); say what lives in it, because a map with a \
                 blank spot misleads",
                member.name, member.folder, member.name
            )
        })
        .collect()
}

/// A binary is named by its folder, for `gateway` is a library's short name too.
fn is_named(member: &Member, text: &str) -> bool {
    let short = member.name.strip_prefix("kefu-");
    text.contains(&member.folder)
        || short.is_some_and(|short| {
            text.contains(&format!("`{}`", member.name)) || text.contains(&format!("`{short}`"))
        })
}

/// Metrics in sources that the operator's document does not name.
pub(crate) fn unnamed_metrics(sources: &[TextFile], documents: &[TextFile]) -> Vec<String> {
    let text = find(documents, OPERATIONS).unwrap_or_default();
    let names: BTreeSet<&str> = sources
        .iter()
        .filter(|source| source.path.contains("/src/") && source.text.contains("metrics::"))
        .flat_map(|source| source.text.split('"'))
        .filter(|part| part.starts_with("kefu_") && part.chars().all(is_of_a_metric))
        .collect();
    let unnamed = names.into_iter().filter(|name| {
        !text.contains(&format!("`{name}`")) && !text.contains(&format!("`{name}{{"))
    });
    let complaint =
        |name| format!("{name} is not in {OPERATIONS}; nobody watches what is not told");
    unnamed.map(complaint).collect()
}

fn is_of_a_metric(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'
}

/// Readmes that are missing or do not give the two commands.
pub(crate) fn missing_commands(documents: &[TextFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for readme in READMES {
        let Some(text) = find(documents, readme) else {
            complaints.push(format!("{readme} is missing; it is the first thing that is read"));
            continue;
        };
        for command in COMMANDS.iter().filter(|command| !text.contains(**command)) {
            complaints.push(format!(
                "{readme} does not give `{command}`; running and testing are one command each, \
                 and a reader must find both"
            ));
        }
    }
    complaints
}

/// Relative links whose target does not exist. `exists` is asked about paths relative to the root.
pub(crate) fn broken_links(documents: &[TextFile], exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for document in documents {
        let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
        for target in relative_links(&document.text) {
            let inside = normalized(&folder.join(target));
            if !inside.is_some_and(|path| exists(&path)) {
                complaints.push(format!(
                    "{}: the link to {target} leads nowhere; correct it, because a reader follows it",
                    document.path
                ));
            }
        }
    }
    complaints
}

/// `path` without `.` and `..`; `None` if it leaves the root.
fn normalized(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => clean.pop().then_some(())?,
            Component::Normal(part) => clean.push(part),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(clean)
}

/// The targets of links and images into the work tree, without their fragments.
fn relative_links(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let prose = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    prose.flat_map(targets).filter_map(relative_target).collect()
}

/// What stands in the round brackets of `[…](…)`, and after `[…]: `.
fn targets(line: &str) -> Vec<&str> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    inline.chain(definition.map(|(_, target)| target.trim())).collect()
}

fn relative_target(target: &str) -> Option<&str> {
    let path = target.trim_matches(['<', '>']).split('#').next()?;
    let elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
    (!elsewhere).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn member(name: &str, folder: &str) -> Member {
        Member {
            name: name.to_owned(),
            folder: folder.to_owned(),
            description: String::new(),
            manifest: String::new(),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn a_missing_map_is_told() {
        assert_eq!(unnamed_crates(&[member("kefu-core", "crates/core")], &[]).len(), 1);
    }

    #[test]
    fn a_crate_is_named_by_folder_or_package() {
        let members = [
            member("kefu-core", "crates/core"),
            member("kefu-gateway", "crates/gateway"),
            member("gateway", "bins/gateway"),
        ];
        let by_table = [document(ARCHITECTURE, "`core`, `kefu-gateway`, `bins/gateway`")];
        assert!(unnamed_crates(&members, &by_table).is_empty());
        let library_only = [document(ARCHITECTURE, "`core`, `gateway`")];
        assert_eq!(unnamed_crates(&members, &library_only).len(), 1);
    }

    #[test]
    fn a_metric_that_operators_are_not_told_of_is_told() {
        let counted = r#"metrics::counter!("kefu_a_total", "kind" => "kefu-b").increment(1);"#;
        let sources = [document("crates/a/src/lib.rs", counted)];
        let complaints =
            |text: &str| unnamed_metrics(&sources, &[document(OPERATIONS, text)]).len();
        assert_eq!(complaints("| `kefu_a_totals` | counter |"), 1);
        assert_eq!(complaints("| `kefu_a_total{kind}` | counter |"), 0);
        assert_eq!(complaints("| `kefu_a_total` | counter |"), 0);
    }

    #[test]
    fn both_readmes_need_both_commands() {
        let full = COMMANDS.join("\n");
        let good = READMES.map(|path| document(path, &full));
        assert!(missing_commands(&good).is_empty());
        assert_eq!(missing_commands(&good[..1]).len(), 1);
        let half = READMES.map(|path| document(path, COMMANDS[0]));
        assert_eq!(missing_commands(&half).len(), 2);
    }

    #[test]
    fn only_relative_links_are_followed() {
        let text = "See [a](../README.md#x) and ![b](img/b.png \"t\"), [c](https://x.example/c.md),\n\
                    [d](#here)\n[e]: e.md\n```\n[not](a-link.md)\n```\n[f](<f.md>)\n";
        assert_eq!(relative_links(text), ["../README.md", "img/b.png", "e.md", "f.md"]);
    }

    #[test]
    fn a_link_is_resolved_from_its_document() {
        let exists = |path: &Path| path == Path::new("README.md");
        let from = |text: &str| broken_links(&[document("docs/adr/a.md", text)], &exists).len();
        assert_eq!(from("[a](../../README.md)"), 0);
        assert_eq!(from("[a](README.md)"), 1);
        assert_eq!(from("[a](../../../README.md)"), 1);
    }
}
