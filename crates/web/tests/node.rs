//! Runs what Node has to say of the modules: the client library's tests (`*.test.mjs`), on its sources
//! and on what is served; the TypeScript compiler's check of all types.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tests of the client library.
const SUITES: [&str; 3] = ["client.test.mjs", "link.test.mjs", "desk.test.mjs"];
/// The compiler of the types; fetched by npm into the build folder.
const TYPESCRIPT: &str = "typescript@7.0.2";

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Runs a program of Node's and shows what it said if it failed.
fn run(command: &mut Command) {
    let run = command.output().unwrap_or_else(|error| {
        panic!(
            "node 20 or newer and npm are needed on PATH (Debian: `apt-get install nodejs npm`), or run `cargo xtask test`: {error}"
        )
    });
    assert!(
        run.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
}

#[test]
fn the_client_library_passes_its_tests_in_node() {
    run(Command::new("node").arg("--test").args(SUITES).current_dir(tests()));
}

#[test]
fn what_is_served_of_the_client_library_passes_the_same_tests() {
    let served = kefu_web::asset("/client.js").expect("the client library").body;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("client.mjs");
    fs::write(&file, served).expect("a file in the build folder");
    run(Command::new("node")
        .arg("--test")
        .args(SUITES)
        .env("KEFU_CLIENT", file)
        .current_dir(tests()));
}

#[test]
fn every_module_that_is_served_is_valid() {
    for name in ["client", "widget", "index", "console"] {
        let served = kefu_web::asset(&format!("/{name}.js")).expect("a module").body;
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-check.mjs"));
        fs::write(&file, served).expect("a file in the build folder");
        run(Command::new("node").arg("--check").arg(file));
    }
}

#[test]
fn the_types_of_all_modules_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm");
    let mut compiler = Command::new("npm");
    compiler
        .args([
            "exec",
            "--yes",
            "--prefer-offline",
            "--package",
            TYPESCRIPT,
            "--",
            "tsc",
            "--project",
        ])
        .arg(folder)
        .env("npm_config_cache", cache)
        .env("npm_config_update_notifier", "false");
    run(&mut compiler);
}
