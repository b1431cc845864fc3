//! Runs the tests of the client library (`client.test.mjs`) in Node.

use std::path::Path;
use std::process::Command;

#[test]
fn the_client_library_passes_its_tests_in_node() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let run = Command::new("node")
        .args(["--test", "client.test.mjs"])
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "node 20 or newer is needed on PATH (Debian: `apt-get install nodejs`), or run `cargo xtask test`: {error}"
            )
        });
    assert!(
        run.status.success(),
        "{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
}
