//! A setting that is never shown.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize, Serializer};

use super::ConfigError;

/// What stands in the place of a secret.
const REDACTED: &str = "<redacted>";

/// A secret: printed and serialised as `<redacted>`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Reads the file that `key` names; line ends at its end do not count.
    pub(super) fn read(key: &str, path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { what: key.to_owned(), source })?;
        let secret = text.trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            return Err(ConfigError::Value(format!("{key}: the file is empty")));
        }
        Ok(Self(secret.to_owned()))
    }
}

impl From<String> for Secret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}
