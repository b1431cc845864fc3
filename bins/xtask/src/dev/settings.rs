//! The settings that all processes of the cluster share.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes them into `folder`, to which only its owner has access.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(folder: &Path, postgres: &str, redis: &str) -> Result<PathBuf> {
    let path = folder.join("kefu.toml");
    let text = text(&folder.join("data"), postgres, redis, &secret());
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The proxy is on this machine, and so is everybody who can reach it: the demo is on.
fn text(data: &Path, postgres: &str, redis: &str, secret: &str) -> String {
    format!(
        r#"profile = "cluster"
data_dir = "{}"

[server]
trusted_proxies = ["127.0.0.1/32"]

[demo]
enabled = "true"

[auth]
secret = "{secret}"

[postgres]
url = "{postgres}"

[redis]
url = "{redis}"
"#,
        data.display()
    )
}

/// 32 random bytes in hexadecimal digits.
fn secret() -> String {
    let bytes: [u8; 32] = rand::random();
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_toml_with_a_secret_of_their_own() {
        let (one, other) = (secret(), secret());
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
        let text = text(Path::new("/data"), "postgres://p", "redis://r", &one);
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["auth"]["secret"].as_str(), Some(one.as_str()));
        assert_eq!(table["redis"]["url"].as_str(), Some("redis://r"));
    }
}
