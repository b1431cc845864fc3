//! The programs that the tests need beside Rust and a C compiler, and how they get here.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// A program the tests start, and the Debian/Ubuntu package that brings it.
struct Program {
    name: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const PROGRAMS: [Program; 3] = [
    Program { name: "chromium", package: "chromium", purpose: "the browser of the page tests" },
    Program {
        name: "chromedriver",
        package: "chromium-driver",
        purpose: "drives the browser of the page tests",
    },
    Program { name: "node", package: "nodejs", purpose: "runs the tests of the client library" },
];

/// How packages can be installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installer {
    /// `apt-get` as it is.
    Apt,
    /// `apt-get` through `sudo`.
    SudoApt,
    /// There is no `apt-get`.
    Unknown,
    /// There is `apt-get`, but neither root's rights nor `sudo`.
    NotPermitted,
}

/// Installs the programs that are missing; does nothing, and asks no registry, if none is.
///
/// # Errors
/// Something is missing and cannot be installed from here; the message says what to install.
pub(crate) fn install_missing() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing:\n{}", list(&missing));
    for line in install_commands(&missing, installer())? {
        run(&line)?;
    }
    let still = self::missing();
    if !still.is_empty() {
        bail!(
            "the packages were installed, but these programs are still not on PATH; \
             install them by hand:\n{}",
            list(&still)
        );
    }
    Ok(())
}

fn missing() -> Vec<&'static Program> {
    PROGRAMS.iter().filter(|program| !is_on_path(program.name)).collect()
}

fn is_on_path(name: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn installer() -> Installer {
    choose_installer(is_on_path("apt-get"), is_root(), is_on_path("sudo"))
}

fn choose_installer(apt: bool, root: bool, sudo: bool) -> Installer {
    match (apt, root, sudo) {
        (false, _, _) => Installer::Unknown,
        (true, true, _) => Installer::Apt,
        (true, false, true) => Installer::SudoApt,
        (true, false, false) => Installer::NotPermitted,
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The command lines that install `missing`. The package index is refreshed first: a new machine
/// has none, and an old one names versions that are gone.
fn install_commands(missing: &[&Program], installer: Installer) -> Result<Vec<Vec<&'static str>>> {
    let prefix: &[&str] = match installer {
        Installer::Apt => &[],
        Installer::SudoApt => &["sudo"],
        Installer::Unknown => bail!(
            "there is no apt-get here; install these with this system's package manager:\n{}",
            list(missing)
        ),
        Installer::NotPermitted => bail!(
            "apt-get needs root and there is no sudo; as root run: apt-get install {}",
            packages(missing).join(" ")
        ),
    };
    let apt = |arguments: &[&'static str]| {
        let words: [&[&'static str]; 3] =
            [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], arguments];
        words.concat()
    };
    let mut install = apt(&["install", "--yes", "--no-install-recommends"]);
    install.extend(packages(missing));
    Ok(vec![apt(&["update"]), install])
}

fn packages(missing: &[&Program]) -> Vec<&'static str> {
    missing.iter().map(|program| program.package).collect()
}

fn list(programs: &[&Program]) -> String {
    let line = |program: &&Program| {
        let Program { name, package, purpose } = program;
        format!("  {name} ({purpose}; Debian/Ubuntu package {package})")
    };
    programs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn run(words: &[&str]) -> Result<()> {
    let line = words.join(" ");
    let (program, arguments) = words.split_first().context("an empty command line")?;
    println!("$ {line}");
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<&'static Program> {
        PROGRAMS.iter().collect()
    }

    #[test]
    fn root_needs_no_sudo() {
        assert_eq!(choose_installer(true, true, false), Installer::Apt);
        let lines = install_commands(&all(), Installer::Apt).unwrap();
        assert_eq!(lines[0].join(" "), "env DEBIAN_FRONTEND=noninteractive apt-get update");
        assert_eq!(
            lines[1].join(" "),
            "env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
             chromium chromium-driver nodejs"
        );
    }

    #[test]
    fn others_go_through_sudo() {
        assert_eq!(choose_installer(true, false, true), Installer::SudoApt);
        let lines = install_commands(&all(), Installer::SudoApt).unwrap();
        assert!(lines.iter().all(|line| line.starts_with(&["sudo", "env"])));
    }

    #[test]
    fn without_rights_the_message_is_the_command_to_run() {
        assert_eq!(choose_installer(true, false, false), Installer::NotPermitted);
        let error = install_commands(&all(), Installer::NotPermitted).unwrap_err();
        assert!(error.to_string().contains("apt-get install chromium chromium-driver nodejs"));
    }

    #[test]
    fn without_apt_the_message_names_every_program() {
        assert_eq!(choose_installer(false, true, true), Installer::Unknown);
        let message = install_commands(&all(), Installer::Unknown).unwrap_err().to_string();
        assert!(PROGRAMS.iter().all(|program| message.contains(program.name)), "{message}");
    }

    #[test]
    fn a_program_is_looked_for_on_path() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program-of-kefu"));
    }
}
