//! Whether the demo, which gives tokens to whoever asks, is on.

use crate::config::{Config, DemoMode};
use crate::signing_secret::SigningSecret;

/// Resolves `demo.enabled`. `auto` is for the first run on one's own machine: nobody else can reach
/// the listener, and no real system relies on a secret that nobody chose. What depends on the single
/// request (host, origin, forwarding) is checked by the gateway.
pub(crate) fn is_enabled(config: &Config, secret: &SigningSecret) -> bool {
    match config.demo.enabled {
        DemoMode::True => true,
        DemoMode::False => false,
        DemoMode::Auto => {
            let local = config.server.listen.ip().is_loopback();
            local && secret.is_self_made() && config.auth.jwks_file.is_none()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn is_enabled_with(settings: &[(&str, &str)]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = ("KEFU__DATA_DIR", folder.path().to_str().unwrap());
        let settings = settings.iter().chain([&data_dir]);
        let environment = settings.map(|(name, value)| (OsString::from(name), value.into()));
        let config = Config::load(None, environment).unwrap();
        is_enabled(&config, &SigningSecret::load(&config).unwrap())
    }

    #[test]
    fn auto_needs_loopback_and_the_self_made_secret() {
        assert!(is_enabled_with(&[]));
        assert!(is_enabled_with(&[("KEFU__SERVER__LISTEN", "[::1]:0")]));
        assert!(!is_enabled_with(&[("KEFU__SERVER__LISTEN", "0.0.0.0:8080")]));
        let chosen = ("KEFU__AUTH__SECRET", "a secret of thirty-two bytes....");
        assert!(!is_enabled_with(&[chosen]));
        assert!(is_enabled_with(&[chosen, ("KEFU__DEMO__ENABLED", "true")]));
        assert!(!is_enabled_with(&[("KEFU__DEMO__ENABLED", "false")]));
    }
}
