//! What the command line takes and refuses. Sweeping itself is shown where gateways run beside it.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::process::{Command, Output};

fn drainer(arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queue-drainer"));
    command.args(arguments).envs(settings.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_embedded_profile_needs_no_drainer() {
    let output = drainer(&[], &[]);
    assert_eq!(output.status.code(), Some(1));
    let refusal = text(&output.stderr);
    assert!(refusal.contains("drains its own queue"), "{refusal}");
}

#[test]
fn refused_settings_are_told_apart() {
    let output = drainer(&["check-config"], &[("KEFU__PROFILE", "cluster")]);
    assert_eq!(output.status.code(), Some(2));
    let refusal = text(&output.stderr);
    assert!(refusal.contains("postgres.url: must be set"), "{refusal}");
}

#[test]
fn effective_settings_are_printed_without_secrets() {
    let settings = [
        ("KEFU__PROFILE", "cluster"),
        ("KEFU__POSTGRES__URL", "postgres://kefu:hidden@db/kefu"),
        ("KEFU__REDIS__URL", "redis://:hidden@cache"),
        ("KEFU__AUTH__SECRET", "hidden hidden hidden hidden hidden"),
    ];
    let output = drainer(&["check-config"], &settings);
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    assert!(printed.contains("profile = \"cluster\"") && !printed.contains("hidden"), "{printed}");
}
