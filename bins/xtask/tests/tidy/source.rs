//! What every Rust and JavaScript file must keep to.

use crate::workspace::TextFile;

const MAX_RUST_LINES: usize = 450;
const MAX_JAVASCRIPT_LINES: usize = 600;

/// Marks a line that breaks a rule on purpose: `// tidy: <reason>` on it or on the line above.
const MARKER: &str = "// tidy: ";

/// A text that no Rust file may contain, and why. Written in two halves, so that this file does not
/// contain it either.
struct Forbidden {
    text: &'static str,
    reason: &'static str,
}

const FORBIDDEN: [Forbidden; 6] = [
    Forbidden { text: concat!("todo", "!("), reason: "unfinished work is not landed" },
    Forbidden { text: concat!("unimplemented", "!("), reason: "unfinished work is not landed" },
    Forbidden { text: concat!("dbg", "!("), reason: "it prints what may be private" },
    Forbidden {
        text: concat!("#[", "ignore"),
        reason: "a test that does not run proves nothing; long ones belong to `cargo xtask show`",
    },
    Forbidden {
        text: concat!("[", "allow("),
        reason: "`expect` with a reason tells when it is no longer needed",
    },
    Forbidden {
        text: concat!("unbounded_", "channel"),
        reason: "memory must be bounded when the other side is slow",
    },
];

/// What is wrong with the sources.
pub(crate) fn complaints(files: &[TextFile]) -> Vec<String> {
    files
        .iter()
        .flat_map(|file| {
            let mut complaints = size(file);
            if is_rust(file) {
                complaints.extend(name(file));
                complaints.extend(heading(file));
                complaints.extend(forbidden_texts(file));
                complaints.extend(sleeps(file));
            }
            complaints
        })
        .collect()
}

fn is_rust(file: &TextFile) -> bool {
    file.path.ends_with(".rs")
}

fn size(file: &TextFile) -> Vec<String> {
    let limit = if is_rust(file) { MAX_RUST_LINES } else { MAX_JAVASCRIPT_LINES };
    let lines = file.text.lines().count();
    if lines <= limit {
        return Vec::new();
    }
    vec![format!(
        "{}: {lines} lines, at most {limit}; split it by concept, because a file is read as a whole",
        file.path
    )]
}

fn name(file: &TextFile) -> Option<String> {
    let name = file.path.rsplit('/').next()?;
    matches!(name, "utils.rs" | "util.rs").then(|| {
        format!("{}: name the concept; a module of leftovers has no edge and only grows", file.path)
    })
}

/// The crate's README may be its front page instead.
fn heading(file: &TextFile) -> Option<String> {
    let begins = ["//!", "#![doc = include_str!("];
    (!begins.iter().any(|begin| file.text.starts_with(begin))).then(|| {
        format!("{}: does not begin with `//!`; its first lines say what it is for", file.path)
    })
}

/// The lines of code, counted from 1, without the marked ones and whole-line comments.
fn code(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut marked_above = false;
    file.text.lines().enumerate().filter_map(move |(index, line)| {
        let marked = std::mem::replace(&mut marked_above, line.trim_start().starts_with(MARKER));
        let skipped = marked || line.contains(MARKER) || line.trim_start().starts_with("//");
        (!skipped).then_some((index + 1, line))
    })
}

fn forbidden_texts(file: &TextFile) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in code(file) {
        for Forbidden { text, reason } in FORBIDDEN.iter().filter(|rule| line.contains(rule.text)) {
            complaints.push(format!("{}:{number}: `{text}` is not used here; {reason}", file.path));
        }
    }
    complaints
}

fn sleeps(file: &TextFile) -> Vec<String> {
    let first = first_test_line(file);
    code(file)
        .filter(|(number, line)| first.is_some_and(|first| *number >= first) && sleeps_in(line))
        .map(|(number, _)| {
            format!(
                "{}:{number}: a test that sleeps; wait for the condition, or, where time itself is \
                 tested or paused, say so with `{MARKER}<reason>`, because a sleep is too short on \
                 a busy machine and too long on all others",
                file.path
            )
        })
        .collect()
}

/// Where the test code of a file begins, if it has any.
fn first_test_line(file: &TextFile) -> Option<usize> {
    if file.path.contains("/tests/") || file.path.ends_with("/tests.rs") {
        return Some(1);
    }
    let line = file.text.lines().position(|line| line.trim_start().starts_with("#[cfg(test)]"))?;
    Some(line + 1)
}

fn sleeps_in(line: &str) -> bool {
    line.match_indices(concat!("sleep", "(")).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || character == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(path: &str, text: &str) -> Vec<String> {
        complaints(&[TextFile { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn a_good_file_passes() {
        assert!(
            complaints_on("crates/x/src/lib.rs", "//! What it is for.\nfn x() {}\n").is_empty()
        );
    }

    #[test]
    fn each_forbidden_text_is_found_where_it_stands() {
        for Forbidden { text, .. } in FORBIDDEN {
            let complaints = complaints_on("crates/x/src/a.rs", &format!("//! x\n    {text}\n"));
            assert_eq!(complaints.len(), 1, "{text}");
            assert!(complaints[0].starts_with("crates/x/src/a.rs:2: "), "{complaints:?}");
        }
    }

    #[test]
    fn a_long_file_is_refused() {
        let lines = |count: usize| format!("//! x\n{}", "x\n".repeat(count - 1));
        assert!(complaints_on("a.rs", &lines(MAX_RUST_LINES)).is_empty());
        assert_eq!(complaints_on("a.rs", &lines(MAX_RUST_LINES + 1)).len(), 1);
        assert!(complaints_on("a.js", &lines(MAX_JAVASCRIPT_LINES)).is_empty());
        assert_eq!(complaints_on("a.js", &lines(MAX_JAVASCRIPT_LINES + 1)).len(), 1);
    }

    #[test]
    fn a_module_of_leftovers_is_refused() {
        assert_eq!(complaints_on("crates/x/src/utils.rs", "//! x\n").len(), 1);
    }

    #[test]
    fn a_file_without_a_heading_is_refused() {
        assert_eq!(complaints_on("crates/x/src/a.rs", "fn x() {}\n").len(), 1);
        let front_page = "#![doc = include_str!(\"../README.md\")]\n";
        assert!(complaints_on("crates/x/src/lib.rs", front_page).is_empty());
    }

    #[test]
    fn a_sleep_is_refused_in_tests_only() {
        let line = concat!("    tokio::time::sleep", "(d).await;\n");
        let plain = format!("//! x\n{line}");
        assert!(complaints_on("crates/x/src/a.rs", &plain).is_empty());
        assert_eq!(complaints_on("crates/x/tests/a.rs", &plain).len(), 1);
        assert_eq!(complaints_on("crates/x/src/a/tests.rs", &plain).len(), 1);
        let after = format!("//! x\n{line}#[cfg(test)]\nmod tests {{\n{line}}}\n");
        let complaints = complaints_on("crates/x/src/a.rs", &after);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].contains("a.rs:5:"));
    }

    #[test]
    fn a_marked_line_is_accepted() {
        let sleep = concat!("sleep", "(d);");
        let same_line = format!("//! x\n{sleep} // tidy: time is paused\n");
        assert!(complaints_on("crates/x/tests/a.rs", &same_line).is_empty());
        let line_above = format!("//! x\n// tidy: time is paused\n{sleep}\n");
        assert!(complaints_on("crates/x/tests/a.rs", &line_above).is_empty());
        let far_above = format!("//! x\n// tidy: time is paused\n\n{sleep}\n");
        assert_eq!(complaints_on("crates/x/tests/a.rs", &far_above).len(), 1);
    }
}
