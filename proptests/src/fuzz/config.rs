//! Configuration files: any text is a valid configuration, or is refused with a message that says where
//! to look and never shows a secret.

use std::fs;
use std::path::Path;

use kefu_app::{Config, ConfigError, DEFAULTS};
use tempfile::TempDir;
use toml::{Table, Value};

use super::Shape;
use crate::{Violation, ensure};

/// The loader under test.
pub type Load = fn(&Path) -> Result<Config, ConfigError>;

/// Configuration files.
pub const SHAPE: Shape = Shape {
    name: "config",
    words: &[
        b"\n",
        b"= ",
        b"\"",
        b"[",
        b"]",
        b"[auth]\n",
        b"secret = ",
        b"\"\"",
        b"''",
        b"true",
        b"-1",
        b"1e400",
        b"9223372036854775807",
        b"[]",
        b"{ a = 1 }",
        b"1979-05-27",
        b"[limits]\n",
        b"url = ",
        b"_file",
        b"#",
        b"\xef\xbb\xbf",
    ],
    mended: |bytes| bytes,
};

/// In every secret of the corpus.
const MARK: &str = "xyzzy";
/// Values shorter than this may stand in a message by chance.
const TELLING: usize = 8;
const SECRETS: [(&str, &str); 3] = [("auth", "secret"), ("postgres", "url"), ("redis", "url")];

/// Checks the real loader.
///
/// # Errors
/// What does not hold.
pub fn target(data: &[u8]) -> Result<(), Violation> {
    check(|file| Config::load(Some(file), []), data)
}

/// Checks any loader.
///
/// # Errors
/// What does not hold.
///
/// # Panics
/// When no temporary file can be written.
pub fn check(load: Load, data: &[u8]) -> Result<(), Violation> {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("kefu.toml");
    fs::write(&file, data).expect("a temporary file");
    let secrets = Secrets::of(data);
    match load(&file) {
        Ok(config) => {
            let shown = config.to_redacted_toml().map_err(|why| Violation::new(why.to_string()))?;
            secrets.absent(&shown)?;
            secrets.absent(&format!("{config:?}"))?;
            let keys: Result<Table, _> = shown.parse();
            ensure(keys.is_ok(), || format!("the settings are shown as no TOML: {shown}"))
        }
        Err(error) => {
            let told = error.to_string();
            ensure(says_where(&error, &told, &file), || format!("names no key: {told}"))?;
            secrets.absent(&told)
        }
    }
}

/// A key, or the file where there is no reading it.
fn says_where(error: &ConfigError, told: &str, file: &Path) -> bool {
    match error {
        ConfigError::Syntax { .. } => told.contains(&*file.to_string_lossy()),
        ConfigError::Unreadable { .. } => {
            told.contains(&*file.to_string_lossy()) || names_a_key(told)
        }
        ConfigError::UnknownKey { key, .. } => told.contains(key),
        ConfigError::BothTwins { .. } | ConfigError::Value(_) => names_a_key(told),
        ConfigError::Refused(problems) => problems.iter().all(|problem| names_a_key(problem)),
        ConfigError::Unprintable(_) => false,
    }
}

fn names_a_key(told: &str) -> bool {
    let defaults: Table = DEFAULTS.parse().expect("the defaults are TOML");
    defaults.iter().any(|(key, value)| match value.as_table() {
        None => told.contains(key.as_str()),
        Some(section) => section.keys().any(|name| told.contains(name.as_str())),
    })
}

/// What a message must not hold.
struct Secrets(Vec<String>);

impl Secrets {
    fn of(data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let Ok(mut table) = text.parse::<Table>() else {
            return Self(vec![MARK.to_owned()]);
        };
        let mut secrets = Vec::new();
        for (section, name) in SECRETS {
            let section = table.get_mut(section).and_then(Value::as_table_mut);
            secrets.extend(section.and_then(|section| section.remove(name)));
        }
        // A text that stands elsewhere too is no secret; neither is what is too short to tell.
        let elsewhere = format!("{}{DEFAULTS}", Value::Table(table));
        let texts = secrets.iter().map(|secret| match secret {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        Self(texts.filter(|text| text.len() >= TELLING && !elsewhere.contains(text)).collect())
    }

    fn absent(&self, told: &str) -> Result<(), Violation> {
        let shown = self.0.iter().find(|secret| told.contains(secret.as_str()));
        ensure(shown.is_none(), || format!("shows the secret {shown:?}: {told}"))
    }
}
