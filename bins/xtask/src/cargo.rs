//! Runs cargo in the workspace root and tells how long it took.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Raises the soft limit of open files to the hard one, then becomes the command it is given. A
/// test holds both ends of thousands of sockets, and the usual soft limit is 1,024.
const RAISE_OPEN_FILES: &str = r#"ulimit -n "$(ulimit -H -n)" && exec "$@""#;

/// How long a command ran.
#[derive(Debug)]
pub(crate) struct Elapsed(pub(crate) Duration);

/// One cargo command, not yet run.
pub(crate) struct Cargo {
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
    many_open_files: bool,
}

impl Cargo {
    pub(crate) fn new<const N: usize>(arguments: [&str; N]) -> Self {
        Self {
            arguments: arguments.map(OsString::from).to_vec(),
            environment: Vec::new(),
            many_open_files: false,
        }
    }

    pub(crate) fn args(mut self, more: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(more.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((key, value.into()));
        self
    }

    /// Lets the command and its children open as many files as the system permits.
    pub(crate) fn with_many_open_files(mut self) -> Self {
        self.many_open_files = true;
        self
    }

    /// Runs the command with this process's output.
    ///
    /// # Errors
    /// Cargo could not be started, or it failed.
    #[expect(
        clippy::disallowed_methods,
        reason = "times a whole command; there is no clock to pass"
    )]
    pub(crate) fn run(self) -> Result<Elapsed> {
        let line = self.line();
        println!("$ {line}");
        let started = Instant::now();
        let status = self.command().status().with_context(|| format!("cannot start `{line}`"))?;
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(Elapsed(started.elapsed()))
    }

    /// What a person would type.
    fn line(&self) -> String {
        let environment = self.environment.iter().map(|(key, value)| format!("{key}={value}"));
        let arguments = self.arguments.iter().map(|argument| argument.to_string_lossy().into());
        let words: Vec<String> = environment.chain(["cargo".to_owned()]).chain(arguments).collect();
        words.join(" ")
    }

    fn command(&self) -> Command {
        // Cargo tells its children which cargo runs them: with `cargo +toolchain`, not the one on PATH.
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = if self.many_open_files {
            let mut shell = Command::new("sh");
            shell.args(["-c", RAISE_OPEN_FILES, "sh"]).arg(program);
            shell
        } else {
            Command::new(program)
        };
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_line_can_be_typed() {
        let cargo = Cargo::new(["test"]).args(["--test", "kill"]).env("KEFU_KILL_ROUNDS", "20");
        assert_eq!(cargo.line(), "KEFU_KILL_ROUNDS=20 cargo test --test kill");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = Cargo::new(["no-such-subcommand"]).run().unwrap_err();
        assert!(error.to_string().contains("`cargo no-such-subcommand` failed"), "{error}");
    }

    #[test]
    fn many_open_files_runs_the_same_command() {
        let Elapsed(_) = Cargo::new(["--version"]).with_many_open_files().run().unwrap();
        let failing = Cargo::new(["no-such-subcommand"]).with_many_open_files().run();
        assert!(failing.is_err());
    }
}
