//! The self-made secret: made once, complete, for the owner only.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Barrier;

use kefu_app::{Config, SigningSecret};

fn config(data_dir: &Path) -> Config {
    let environment = [(OsString::from("KEFU__DATA_DIR"), data_dir.as_os_str().to_owned())];
    Config::load(None, environment).unwrap()
}

#[test]
fn it_is_made_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let first = SigningSecret::load(&config).unwrap();
    assert!(first.is_self_made());
    assert_eq!(first.as_bytes().len(), 43);
    assert_eq!(SigningSecret::load(&config).unwrap().as_bytes(), first.as_bytes());

    let path = folder.path().join("auth.secret");
    assert_eq!(fs::read(&path).unwrap(), first.as_bytes());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    assert!(!format!("{first:?}").contains(std::str::from_utf8(first.as_bytes()).unwrap()));
}

#[test]
fn another_folder_gets_another_secret() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = |folder: &Path| SigningSecret::load(&config(folder)).unwrap();
    assert_ne!(secret(one.path()).as_bytes(), secret(two.path()).as_bytes());
}

#[test]
fn many_at_once_agree() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let barrier = Barrier::new(16);
    let secrets: Vec<_> = std::thread::scope(|scope| {
        let load = || {
            barrier.wait();
            SigningSecret::load(&config).unwrap().as_bytes().to_vec()
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(load)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
}

#[test]
fn a_damaged_one_is_refused_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.secret");
    fs::write(&path, "short").unwrap();
    let refusal = SigningSecret::load(&config(folder.path())).unwrap_err().to_string();
    assert!(refusal.contains("is damaged"), "{refusal}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "short");
}

#[test]
fn a_missing_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = SigningSecret::load(&config(&folder.path().join("missing"))).unwrap_err();
    assert!(refusal.to_string().contains("auth.secret"), "{refusal}");
}
