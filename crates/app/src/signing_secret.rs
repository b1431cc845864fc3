//! The secret that signs tokens and links: configured, or made on first start and kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kefu_core::Clock;
use kefu_gateway::auth::Authenticator;
use rand::TryRng as _;
use rand::rngs::SysRng;

use crate::config::{Config, Secret};

/// Bytes of randomness in a self-made secret.
const RANDOM_BYTES: usize = 32;
/// Characters of a self-made secret: its bytes as base64url.
const TEXT_BYTES: usize = 43;

/// The secret of this installation.
#[derive(Debug, Clone)]
pub struct SigningSecret {
    secret: Secret,
    self_made: bool,
}

impl SigningSecret {
    /// The configured secret, else the one kept in `<data_dir>/auth.secret`, which is made if it is
    /// missing: 32 random bytes as base64url, readable by the owner only.
    ///
    /// # Errors
    /// When the file cannot be read or made, or holds something else.
    pub fn load(config: &Config) -> Result<Self> {
        if let Some(secret) = &config.auth.secret {
            return Ok(Self { secret: secret.clone(), self_made: false });
        }
        let path = config.data_dir.join("auth.secret");
        let text = read_or_make(&path)
            .with_context(|| format!("cannot read or make {}", path.display()))?;
        let secret = text.trim_end();
        ensure!(
            secret.len() >= TEXT_BYTES,
            "{} is damaged; remove it to have a new secret made (tokens signed with the old one end)",
            path.display()
        );
        Ok(Self { secret: Secret::from(secret.to_owned()), self_made: true })
    }

    /// Whether nobody chose this secret.
    #[must_use]
    pub const fn is_self_made(&self) -> bool {
        self.self_made
    }

    /// What the signatures are keyed with.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.secret.reveal().as_bytes()
    }

    /// Verifies tokens with the public keys of `auth.jwks_file` if that is set, else with this secret.
    pub(crate) fn authenticator(
        &self,
        config: &Config,
        clock: Arc<dyn Clock>,
    ) -> Result<Authenticator> {
        let Some(path) = &config.auth.jwks_file else {
            return Ok(Authenticator::hs256(self.as_bytes(), clock)?);
        };
        let place = || format!("auth.jwks_file: {}", path.display());
        let text = fs::read_to_string(path).with_context(place)?;
        Authenticator::jwks(&text, clock).with_context(place)
    }
}

fn read_or_make(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(path)?;
            fs::read_to_string(path)
        }
        read => read,
    }
}

/// Written beside its place and linked into it: whoever finds the file finds all of it, and of two
/// that make it at once one secret stays and both read it.
fn make(path: &Path) -> io::Result<()> {
    let draft = path.with_extension(format!("secret.{}", random_text::<8>()?));
    let written = write_new(&draft).and_then(|()| link_new(&draft, path));
    fs::remove_file(&draft).ok();
    written?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(random_text::<RANDOM_BYTES>()?.as_bytes())?;
    file.sync_all()
}

/// Random bytes of the system as base64url.
fn random_text<const BYTES: usize>() -> io::Result<String> {
    let mut random = [0; BYTES];
    SysRng.try_fill_bytes(&mut random).map_err(io::Error::other)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

fn link_new(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}
