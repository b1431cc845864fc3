//! Layers of settings: each overrides the ones below it, and none may bring a key of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use toml::{Table, Value};

use super::{Config, ConfigError, DEFAULTS};

/// Begins every environment variable that is ours.
const PREFIX: &str = "KEFU__";
/// Each has a twin `…_file`.
const SECRETS: [&str; 3] = ["auth.secret", "postgres.url", "redis.url"];
/// The one key that may be written as a text and as a boolean.
const TEXT_OR_BOOLEAN: &str = "demo.enabled";

/// Where a layer comes from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    Defaults,
    File(PathBuf),
    Environment,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("defaults"),
            Self::File(path) => path.display().fmt(f),
            Self::Environment => f.write_str("environment"),
        }
    }
}

/// Values by dotted key.
type Values = BTreeMap<String, Value>;

/// The layers so far, merged. The defaults name every key there is.
pub(super) struct Layers {
    values: Values,
}

impl Layers {
    pub(super) fn defaults() -> Result<Self, ConfigError> {
        let mut values = Values::new();
        spread(parse(&Origin::Defaults, DEFAULTS)?, "", &mut values);
        Ok(Self { values })
    }

    /// Adds a TOML text.
    pub(super) fn add_text(&mut self, origin: &Origin, text: &str) -> Result<(), ConfigError> {
        let table = parse(origin, text)?;
        let mut layer = Values::new();
        self.take_known(origin, "", table, &mut layer)?;
        self.add(origin, layer)
    }

    /// Adds the environment variables that are ours.
    pub(super) fn add_environment(
        &mut self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<(), ConfigError> {
        let names: BTreeMap<_, _> =
            self.values.iter().map(|(key, value)| (variable(key), (key, value))).collect();
        let mut layer = Values::new();
        for (name, text) in environment {
            let name = name.to_string_lossy();
            if !name.starts_with(PREFIX) {
                continue;
            }
            let Some((key, default)) = names.get(name.as_ref()) else {
                let origin = Origin::Environment.to_string();
                return Err(ConfigError::UnknownKey { origin, key: name.into_owned() });
            };
            let text = text
                .into_string()
                .map_err(|_| ConfigError::Value(format!("{key}: {name} is not Unicode")))?;
            layer.insert((*key).clone(), from_text(key, default, &text)?);
        }
        self.add(&Origin::Environment, layer)
    }

    /// The typed form.
    pub(super) fn into_typed(self) -> Result<Config, ConfigError> {
        let mut root = Table::new();
        for (key, value) in self.values {
            match key.split_once('.') {
                None => {
                    root.insert(key, value);
                }
                Some((section, name)) => {
                    let section = root.entry(section).or_insert_with(|| Table::new().into());
                    if let Value::Table(section) = section {
                        section.insert(name.to_owned(), value);
                    }
                }
            }
        }
        root.try_into().map_err(|error: toml::de::Error| {
            ConfigError::Value(error.to_string().trim().replace('\n', " "))
        })
    }

    fn add(&mut self, origin: &Origin, mut layer: Values) -> Result<(), ConfigError> {
        if let Some(Value::Boolean(enabled)) = layer.get(TEXT_OR_BOOLEAN) {
            let text = enabled.to_string();
            layer.insert(TEXT_OR_BOOLEAN.to_owned(), text.into());
        }
        for key in SECRETS {
            // Refused here: the refusal of a typed read would repeat the value.
            if layer.get(key).is_some_and(|value| !value.is_str()) {
                return Err(ConfigError::Value(format!("{key}: must be a text in quotes")));
            }
            let file = format!("{key}_file");
            match (is_set(&layer, key), is_set(&layer, &file)) {
                (true, true) => {
                    let (origin, key) = (origin.to_string(), key.to_owned());
                    return Err(ConfigError::BothTwins { origin, key });
                }
                // The later layer decides where the secret comes from, whichever of the two it sets.
                (true, false) => drop(layer.insert(file, String::new().into())),
                (false, true) => drop(layer.insert(key.to_owned(), String::new().into())),
                (false, false) => {}
            }
        }
        self.values.extend(layer);
        Ok(())
    }

    fn take_known(
        &self,
        origin: &Origin,
        above: &str,
        table: Table,
        layer: &mut Values,
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{above}{name}");
            match value {
                Value::Table(section) if self.is_section(&key) => {
                    self.take_known(origin, &format!("{key}."), section, layer)?;
                }
                value if self.values.contains_key(&key) => {
                    layer.insert(key, value);
                }
                _ => return Err(ConfigError::UnknownKey { origin: origin.to_string(), key }),
            }
        }
        Ok(())
    }

    fn is_section(&self, key: &str) -> bool {
        let section = format!("{key}.");
        self.values.keys().any(|known| known.starts_with(&section))
    }
}

/// The environment variable of a key.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase().replace('.', "__"))
}

fn is_set(layer: &Values, key: &str) -> bool {
    layer.get(key).is_some_and(|value| value.as_str() != Some(""))
}

fn parse(origin: &Origin, text: &str) -> Result<Table, ConfigError> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        ConfigError::Syntax {
            origin: origin.to_string(),
            line: before.matches('\n').count() + 1,
            message: error.message().to_owned(),
        }
    })
}

fn spread(table: Table, above: &str, values: &mut Values) {
    for (name, value) in table {
        let key = format!("{above}{name}");
        match value {
            Value::Table(section) => spread(section, &format!("{key}."), values),
            value => drop(values.insert(key, value)),
        }
    }
}

/// Reads `text` as the type that the default of `key` has.
fn from_text(key: &str, default: &Value, text: &str) -> Result<Value, ConfigError> {
    match default {
        Value::Integer(_) => text
            .trim()
            .parse()
            .map(Value::Integer)
            .map_err(|_| ConfigError::Value(format!("{key}: must be a whole number"))),
        Value::Array(items) => {
            let text_item = Value::String(String::new());
            let item = items.first().unwrap_or(&text_item);
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| from_text(key, item, part)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::String(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Table(_) => Ok(Value::String(text.to_owned())),
    }
}
