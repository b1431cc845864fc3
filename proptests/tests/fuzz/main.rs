//! Short runs of the fuzz targets (`kefu_proptests::fuzz`), and beside each a broken subject on which the
//! same target must fail.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

mod conversation;
mod house;

use std::path::Path;

use kefu_app::{Config, ConfigError};
use kefu_core::Timestamp;
use kefu_proptests::fuzz::{config, frame, fuzz, fuzz_broken, image, link};
use kefu_proptests::{Violation, caught};
use kefu_protocol::{FrameError, Inbound, Ref};
use kefu_upload::{CleanImage, ImageError, LinkError, LinkSigner, UploadPath, sanitize};

#[test]
fn any_text_is_a_frame_or_a_refusal() -> Result<(), Violation> {
    fuzz(&frame::SHAPE, 4_000, frame::target)
}

#[test]
fn a_reader_without_limit_and_one_that_repeats_are_caught() -> Result<(), Violation> {
    fn unlimited(text: &str, _: usize) -> Result<Inbound, FrameError> {
        Inbound::parse(text, usize::MAX)
    }
    fn repeating(text: &str, max: usize) -> Result<Inbound, FrameError> {
        Inbound::parse(text, max).map_err(|error| FrameError { message: text.to_owned(), ..error })
    }
    fn relabelling(text: &str, max: usize) -> Result<Inbound, FrameError> {
        let inbound = Inbound::parse(text, max)?;
        let longer = |label: Ref| Ref::new(&format!("{}x", label.as_str()));
        Ok(Inbound { reference: inbound.reference.and_then(longer), ..inbound })
    }
    let run = |parse| fuzz_broken(&frame::SHAPE, 1_000, |data| frame::check(parse, data));
    caught(run(unlimited), "content:")?;
    caught(run(repeating), "repeats the text")?;
    caught(run(relabelling), "round trip")
}

#[test]
fn any_file_is_a_clean_image_or_a_refusal() -> Result<(), Violation> {
    fuzz(&image::SHAPE, 4_000, image::target)
}

#[test]
fn a_sanitizer_that_keeps_metadata_is_caught() -> Result<(), Violation> {
    fn keeping(file: &[u8]) -> Result<CleanImage, ImageError> {
        let clean = sanitize(file)?;
        let end = file.windows(6).position(|part| part == b"behind").unwrap_or(file.len());
        Ok(CleanImage { bytes: file[..end].to_vec().into(), ..clean })
    }
    fn keeping_the_end(file: &[u8]) -> Result<CleanImage, ImageError> {
        let clean = sanitize(file)?;
        let bytes = [&clean.bytes[..], b"behind the end"].concat().into();
        Ok(CleanImage { bytes, ..clean })
    }
    let run = |sanitize| fuzz_broken(&image::SHAPE, 1_000, |data| image::check(sanitize, data));
    caught(run(keeping), "metadata")?;
    caught(run(keeping_the_end), "structure")
}

#[test]
fn a_link_opens_what_was_signed_until_its_expiry() -> Result<(), Violation> {
    fuzz(&link::SHAPE, 2_000, link::target)
}

#[test]
fn a_check_that_ignores_expiry_or_signature_is_caught() -> Result<(), Violation> {
    fn timeless(
        signer: &LinkSigner,
        path: &UploadPath,
        expires_at: i64,
        signature: &str,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        match signer.verify(path, expires_at, signature, now) {
            Err(LinkError::Expired) => Ok(()),
            other => other,
        }
    }
    fn trusting(
        _: &LinkSigner,
        _: &UploadPath,
        expires_at: i64,
        _: &str,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        if now.0 / 1_000 < expires_at { Ok(()) } else { Err(LinkError::Expired) }
    }
    let run = |verify| fuzz_broken(&link::SHAPE, 1_000, |data| link::check(verify, data));
    caught(run(timeless), "Ok(()) instead of Err(Expired)")?;
    caught(run(trusting), "Ok(()) instead of Err(Forged)")
}

#[test]
fn any_text_is_a_configuration_or_a_refusal() -> Result<(), Violation> {
    fuzz(&config::SHAPE, 1_500, config::target)
}

#[test]
fn a_loader_that_shows_the_file_is_caught() -> Result<(), Violation> {
    fn showing(file: &Path) -> Result<Config, ConfigError> {
        Config::load(Some(file), []).map_err(|error| {
            let text = std::fs::read(file).expect("readable");
            ConfigError::Value(format!("{error}: {}", String::from_utf8_lossy(&text)))
        })
    }
    fn silent(file: &Path) -> Result<Config, ConfigError> {
        Config::load(Some(file), []).map_err(|_| ConfigError::Value("it is wrong".to_owned()))
    }
    let run = |load| fuzz_broken(&config::SHAPE, 1_000, |data| config::check(load, data));
    caught(run(showing), "shows the secret")?;
    caught(run(silent), "names no key")
}
