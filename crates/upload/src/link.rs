//! Signed, expiring links (U1).

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use kefu_core::Timestamp;
use sha2::Sha256;

use crate::path::UploadPath;

/// Expiry times are whole multiples of this many seconds.
const ROUND_TO: i64 = 300;
const MIN_SECRET_BYTES: usize = 16;
/// Keeps the key apart from other uses of the same secret.
const PURPOSE: &[u8] = b"kefu upload link v1\n";

/// Makes and checks links to images.
///
/// A link is the permission: the access check is made by whoever calls [`Self::sign`], and nothing revokes the
/// link before its expiry (U1).
#[derive(Clone)]
pub struct LinkSigner {
    /// HMAC-SHA256, keyed, with [`PURPOSE`] already fed to it.
    mac: Hmac<Sha256>,
    ttl: Duration,
}

/// A secret too short to sign links with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret that signs image links needs at least {MIN_SECRET_BYTES} bytes")]
pub struct WeakSecret;

/// Why a link opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The signature does not belong to this path and expiry.
    #[error("the link is not valid")]
    Forged,
    /// The link was valid once; `chat.history` gives a new one.
    #[error("the link has expired")]
    Expired,
}

impl LinkSigner {
    /// Signs with `secret`; links live for `ttl`, rounded up (see [`Self::sign`]).
    ///
    /// The secret may serve other purposes too: what is signed begins with a text of its own.
    ///
    /// # Errors
    /// [`WeakSecret`] below 16 bytes.
    pub fn new(secret: &[u8], ttl: Duration) -> Result<Self, WeakSecret> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(WeakSecret);
        }
        let mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| WeakSecret)?;
        Ok(Self { mac: mac.chain_update(PURPOSE), ttl })
    }

    /// `<path>?exp=<unix seconds>&sig=<base64url>`, relative to the server.
    ///
    /// The expiry is `now` plus the time to live, rounded up to a multiple of five minutes: links to one image
    /// signed in the same window are equal, so one serialised frame serves all its readers (U1).
    #[must_use]
    pub fn sign(&self, path: &UploadPath, now: Timestamp) -> String {
        let expires_at = self.expiry(now);
        let signature = self.mac_of(path, expires_at).finalize().into_bytes();
        format!("{path}?exp={expires_at}&sig={}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Checks the parts of a link: the path, `exp` in Unix seconds and `sig`. The comparison takes the same time
    /// wherever the signatures differ. A link is good until just before its expiry.
    ///
    /// # Errors
    /// [`LinkError::Forged`] for a wrong signature, whatever the expiry says, else [`LinkError::Expired`].
    pub fn verify(
        &self,
        path: &UploadPath,
        expires_at: i64,
        signature: &str,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| LinkError::Forged)?;
        self.mac_of(path, expires_at).verify_slice(&signature).map_err(|_| LinkError::Forged)?;
        if now.0 >= expires_at.saturating_mul(1000) {
            return Err(LinkError::Expired);
        }
        Ok(())
    }

    fn mac_of(&self, path: &UploadPath, expires_at: i64) -> Hmac<Sha256> {
        self.mac.clone().chain_update(format!("{path}\n{expires_at}"))
    }

    /// Unix seconds.
    fn expiry(&self, now: Timestamp) -> i64 {
        let window = ROUND_TO * 1000;
        let millis = now.after(self.ttl).0;
        let windows = millis.div_euclid(window) + i64::from(millis.rem_euclid(window) > 0);
        windows.saturating_mul(ROUND_TO)
    }
}

impl fmt::Debug for LinkSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkSigner").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ImageFormat;

    const MINUTE: i64 = 60_000;
    /// 2026-01-28 00:00:00 UTC, a multiple of five minutes.
    const START: i64 = 1_769_558_400_000;

    fn signer() -> LinkSigner {
        LinkSigner::new(b"0123456789abcdef", Duration::from_secs(900)).unwrap()
    }

    fn path() -> UploadPath {
        UploadPath::with_name(Timestamp(START), 7, ImageFormat::Png)
    }

    fn parts(link: &str) -> (i64, String) {
        let (_, query) = link.split_once("?exp=").unwrap();
        let (expires_at, signature) = query.split_once("&sig=").unwrap();
        (expires_at.parse().unwrap(), signature.to_owned())
    }

    #[test]
    fn expiry_is_rounded_up_to_five_minutes() {
        for (now, minutes) in
            [(0, 15), (1, 20), (MINUTE, 20), (5 * MINUTE - 1, 20), (5 * MINUTE, 20)]
        {
            let (expires_at, _) = parts(&signer().sign(&path(), Timestamp(START + now)));
            assert_eq!(expires_at, (START + minutes * MINUTE) / 1000, "{now}");
        }
    }

    #[test]
    fn links_of_one_window_are_equal() {
        let link = |now| signer().sign(&path(), Timestamp(START + now));
        assert_eq!(link(1), link(5 * MINUTE));
        assert_ne!(link(1), link(5 * MINUTE + 1));
    }

    #[test]
    fn a_link_is_good_until_its_expiry() {
        let (expires_at, signature) = parts(&signer().sign(&path(), Timestamp(START)));
        let at = |now| signer().verify(&path(), expires_at, &signature, Timestamp(now));
        assert_eq!(at(expires_at * 1000 - 1), Ok(()));
        assert_eq!(at(expires_at * 1000), Err(LinkError::Expired));
    }

    #[test]
    fn any_change_is_noticed() {
        let now = Timestamp(START);
        let (expires_at, signature) = parts(&signer().sign(&path(), now));
        let verify = |path: &UploadPath, expires_at, signature: &str| {
            signer().verify(path, expires_at, signature, now)
        };
        let other_name = UploadPath::with_name(now, 8, ImageFormat::Png);
        let other_format = UploadPath::with_name(now, 7, ImageFormat::Gif);
        assert_eq!(verify(&other_name, expires_at, &signature), Err(LinkError::Forged));
        assert_eq!(verify(&other_format, expires_at, &signature), Err(LinkError::Forged));
        assert_eq!(verify(&path(), expires_at + 300, &signature), Err(LinkError::Forged));
        assert_eq!(verify(&path(), i64::MAX, &signature), Err(LinkError::Forged));
        assert_eq!(verify(&path(), i64::MIN, &signature), Err(LinkError::Forged));
        for at in 0..signature.len() {
            let mut changed = signature.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(verify(&path(), expires_at, &changed), Err(LinkError::Forged), "{at}");
        }
        for bad in ["", "A", &signature[..42], &format!("{signature}="), &format!("{signature}A")] {
            assert_eq!(verify(&path(), expires_at, bad), Err(LinkError::Forged), "{bad}");
        }
    }

    #[test]
    fn another_secret_signs_nothing_here() {
        let other =
            LinkSigner::new(b"another secret of 24 byte", Duration::from_secs(900)).unwrap();
        let (expires_at, signature) = parts(&other.sign(&path(), Timestamp(START)));
        let verdict = signer().verify(&path(), expires_at, &signature, Timestamp(START));
        assert_eq!(verdict, Err(LinkError::Forged));
        assert_eq!(LinkSigner::new(b"short", Duration::ZERO).unwrap_err(), WeakSecret);
    }

    #[test]
    fn the_secret_is_not_printed() {
        assert!(!format!("{:?}", signer()).contains("0123"));
    }
}
