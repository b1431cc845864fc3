//! Why a configuration is refused.

/// Why a configuration is refused. Messages name the key and never show a secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{what}: cannot be read: {source}")]
    Unreadable {
        /// The configuration file, or the key that names the file.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not TOML.
    #[error("{origin}: line {line}: {message}")]
    Syntax {
        /// Which file.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong, without the text itself: it may be a secret.
        message: String,
    },
    /// Nothing has this name.
    #[error("{origin}: unknown configuration key {key}")]
    UnknownKey {
        /// Which layer.
        origin: String,
        /// The key, as that layer writes it.
        key: String,
    },
    /// One layer sets a secret and the file it is to be read from.
    #[error("{origin}: {key} and {key}_file are both set; set one of them")]
    BothTwins {
        /// Which layer.
        origin: String,
        /// The secret's key.
        key: String,
    },
    /// A value has the wrong type or form.
    #[error("{0}")]
    Value(String),
    /// Values are out of range, or do not go together. One line each.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// The settings cannot be written as TOML.
    #[error("the settings cannot be printed: {0}")]
    Unprintable(String),
}
