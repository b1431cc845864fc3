//! What every member's manifest must say.

use toml::{Table, Value};

use crate::workspace::Member;

/// What is wrong with the manifests.
pub(crate) fn complaints(members: &[Member]) -> Vec<String> {
    members
        .iter()
        .flat_map(|member| {
            let path = format!("{}/Cargo.toml", member.folder);
            if member.description.trim().is_empty() {
                let complaint =
                    format!("{path}: no description; a reader of the tree starts there");
                return [vec![complaint], manifest_complaints(&path, &member.manifest)].concat();
            }
            manifest_complaints(&path, &member.manifest)
        })
        .collect()
}

fn manifest_complaints(path: &str, text: &str) -> Vec<String> {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("{path}: not TOML: {error}")],
    };
    let mut complaints = Vec::new();
    if !inherits(manifest.get("lints")) {
        complaints.push(format!(
            "{path}: no `[lints] workspace = true`; a crate without it is not linted at all"
        ));
    }
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    for table in std::iter::once(&manifest).chain(targets) {
        for (name, _) in dependencies(table).filter(|(_, value)| !inherits(Some(value))) {
            complaints.push(format!(
                "{path}: {name} is not `workspace = true`; versions and features are chosen once, \
                 in the root manifest, or two copies get built"
            ));
        }
    }
    complaints
}

fn dependencies(table: &Table) -> impl Iterator<Item = (&String, &Value)> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .into_iter()
        .filter_map(|key| table.get(key)?.as_table())
        .flatten()
}

fn inherits(value: Option<&Value>) -> bool {
    let workspace = value.and_then(|value| value.get("workspace"));
    workspace.and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
        [dependencies]
        serde.workspace = true
        tokio = { workspace = true, features = [\"fs\"] }
        [lints]
        workspace = true
    ";

    fn member(description: &str, manifest: &str) -> Member {
        Member {
            name: "kefu-x".to_owned(),
            folder: "crates/x".to_owned(),
            description: description.to_owned(),
            manifest: manifest.to_owned(),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn a_good_manifest_passes() {
        assert!(complaints(&[member("What it is for.", GOOD)]).is_empty());
    }

    #[test]
    fn a_missing_description_is_told() {
        assert_eq!(complaints(&[member(" ", GOOD)]).len(), 1);
    }

    #[test]
    fn missing_lints_are_told() {
        assert_eq!(complaints(&[member("x", "[lints]\nworkspace = false")]).len(), 1);
        assert_eq!(complaints(&[member("x", "")]).len(), 1);
    }

    #[test]
    fn a_version_of_its_own_is_told_in_every_table() {
        let bad = "
            [dependencies]
            serde = '1'
            [dev-dependencies]
            tokio = { version = '1' }
            [build-dependencies]
            cc = { path = '../cc' }
            [target.'cfg(unix)'.dependencies]
            nix = '1'
            [lints]
            workspace = true
        ";
        assert_eq!(complaints(&[member("x", bad)]).len(), 4);
    }
}
