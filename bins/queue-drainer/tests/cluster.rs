//! What the drainer asks of its settings. What it does for a cluster is tested with the gateways, in
//! `bins/gateway/tests/cluster`; of the same name, so that `--test cluster` builds both binaries.

use std::process::{Command, Output};

fn drainer(arguments: &[&str], settings: &[(&str, &str)]) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queue-drainer"));
    command.args(arguments).envs(settings.iter().copied()).output()
}

#[test]
fn an_embedded_gateway_needs_no_drainer() -> std::io::Result<()> {
    let refused = drainer(&[], &[])?;
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("the embedded gateway drains its own queue"), "{message}");
    Ok(())
}

#[test]
fn settings_that_a_cluster_needs_are_named() -> std::io::Result<()> {
    let refused = drainer(&["check-config"], &[("KEFU__PROFILE", "cluster")])?;
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr);
    for key in ["postgres.url", "redis.url", "auth.secret"] {
        assert!(message.contains(key), "{message}");
    }
    Ok(())
}
