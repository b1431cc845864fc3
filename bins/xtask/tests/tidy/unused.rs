//! Dependencies that nothing uses.

use toml::{Table, Value};

use crate::workspace::{Member, TextFile};

/// Dependencies of a member that no source or front page of it names.
pub(crate) fn unnamed(members: &[Member], texts: &[TextFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for member in members {
        let prefix = format!("{}/", member.folder);
        let own: Vec<_> = texts.iter().filter(|text| text.path.starts_with(&prefix)).collect();
        for dependency in &member.dependencies {
            let name = dependency.name.replace('-', "_");
            if !own.iter().any(|text| text.text.contains(&name)) {
                complaints.push(format!(
                    "{prefix}Cargo.toml: {} is never named; it only costs build time",
                    dependency.name
                ));
            }
        }
    }
    complaints
}

/// Entries of `[workspace.dependencies]` that no member takes.
pub(crate) fn untaken(root_manifest: &str, members: &[Member]) -> Vec<String> {
    let manifest: Table = match root_manifest.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("Cargo.toml: not TOML: {error}")],
    };
    let entries = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let names = entries.and_then(Value::as_table).into_iter().flat_map(Table::keys);
    names
        .filter(|name| !members.iter().any(|m| m.dependencies.iter().any(|d| d.name == **name)))
        .map(|name| format!("Cargo.toml: no member takes {name}; what is not used is not chosen"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, Kind};

    fn member() -> Member {
        Member {
            name: "kefu-x".to_owned(),
            folder: "crates/x".to_owned(),
            description: String::new(),
            manifest: String::new(),
            dependencies: vec![Dependency { name: "a-b".to_owned(), kind: Kind::Arrow }],
        }
    }

    fn text(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_dependency_named_elsewhere_only_is_told() {
        let elsewhere = text("crates/xy/src/lib.rs", "use a_b::C;");
        assert_eq!(unnamed(&[member()], &[elsewhere]).len(), 1);
        let here = text("crates/x/src/lib.rs", "use a_b::C;");
        assert!(unnamed(&[member()], &[here]).is_empty());
    }

    #[test]
    fn an_entry_that_nobody_takes_is_told() {
        let root = "[workspace.dependencies]\na-b = '1'\nc = '1'\n";
        assert_eq!(untaken(root, &[member()]).len(), 1);
    }
}
