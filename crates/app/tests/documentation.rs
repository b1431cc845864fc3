//! `docs/configuration.md`, the compiled-in defaults and the typed settings name the same keys, with
//! the same defaults.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kefu_app::{Config, DEFAULTS};
use toml::{Table, Value};

fn spread(table: Table, above: &str, values: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        let key = format!("{above}{name}");
        match value {
            Value::Table(section) => spread(section, &format!("{key}."), values),
            value => drop(values.insert(key, value)),
        }
    }
}

fn values(text: &str) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    spread(text.parse().unwrap(), "", &mut values);
    values
}

/// Rows of the tables of keys: `` | `key` | default | … ``. The tables of commands come later.
fn documented() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let keys = text.split("## Commands").next().unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    keys.lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .map(|cells| (cells[1].replace('`', ""), cells[2].clone()))
        .collect()
}

fn keys<V>(values: &BTreeMap<String, V>) -> BTreeSet<&String> {
    values.keys().collect()
}

#[test]
fn documents_defaults_and_types_name_the_same_keys() {
    let defaults = values(DEFAULTS);
    let typed = Config::load(None, []).unwrap().to_redacted_toml().unwrap();
    assert_eq!(keys(&values(&typed)), keys(&defaults));
    assert_eq!(keys(&documented()), keys(&defaults));
}

#[test]
fn documents_give_the_compiled_in_defaults() {
    let defaults = values(DEFAULTS);
    for (key, documented) in documented() {
        let default = match &defaults[&key] {
            // Not set; the document says what happens then.
            Value::String(text) if text.is_empty() => continue,
            value => format!("`{value}`"),
        };
        assert_eq!(documented, default, "{key}");
    }
}
