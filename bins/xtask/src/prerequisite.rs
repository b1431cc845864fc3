//! The programs that commands need beside Rust and a C compiler, and how they get here.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A program that a command starts, and the Debian/Ubuntu package that brings it.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    name: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const POSTGRES: Program = Program {
    name: "initdb",
    package: "postgresql",
    purpose: "throw-away database servers of the cluster profile",
};
const PSQL: Program = Program {
    name: "psql",
    package: "postgresql-client",
    purpose: "asks the database as another program would",
};
const REDIS: Program = Program {
    name: "redis-server",
    package: "redis-server",
    purpose: "throw-away Redis servers of the cluster profile",
};
const HAPROXY: Program = Program {
    name: "haproxy",
    package: "haproxy",
    purpose: "the reverse proxy before two gateways",
};

/// What the tests start.
pub(crate) const TESTS: [Program; 9] = [
    Program { name: "chromium", package: "chromium", purpose: "the browser of the page tests" },
    Program {
        name: "chromedriver",
        package: "chromium-driver",
        purpose: "drives the browser of the page tests",
    },
    Program { name: "node", package: "nodejs", purpose: "runs the tests of the client library" },
    Program {
        name: "npm",
        package: "npm",
        purpose: "fetches the TypeScript compiler and axe-core for the tests of the pages",
    },
    POSTGRES,
    PSQL,
    REDIS,
    Program {
        name: "pgbouncer",
        package: "pgbouncer",
        purpose: "the pooler that the database adapter is tested through",
    },
    HAPROXY,
];

/// What `cargo xtask dev` starts.
pub(crate) const DEV: [Program; 4] = [POSTGRES, PSQL, REDIS, HAPROXY];

/// Where distributions put servers, which are not on everybody's path.
const SERVER_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Holds a folder per version of PostgreSQL.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// Installs the packages of `$@`. Meanwhile no service is started by a package: servers are wanted as
/// programs, and one on a well-known port would be in somebody's way. A policy that is there already
/// is somebody's choice and stays.
const INSTALL: &str = r#"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || exit 1
fi
apt-get update && apt-get install --yes --no-install-recommends "$@"
"#;

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

/// Installs what is missing of `programs`; does nothing, and asks no registry, if nothing is.
///
/// # Errors
/// Something is missing and cannot be installed from here; the message says what to install.
pub(crate) fn install_missing(programs: &[Program]) -> Result<()> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing:\n{}", list(&missing));
    run(&install_command(&missing, installer())?, &packages(&missing))?;
    let still = self::missing(programs);
    if !still.is_empty() {
        bail!(
            "the packages were installed, but these programs are still not on PATH; \
             install them by hand:\n{}",
            list(&still)
        );
    }
    Ok(())
}

fn missing(programs: &[Program]) -> Vec<&Program> {
    programs.iter().filter(|program| !is_installed(program.name)).collect()
}

fn is_installed(name: &str) -> bool {
    let in_folder = |folder: &str| Path::new(folder).join(name).is_file();
    is_on_path(name) || SERVER_FOLDERS.into_iter().any(in_folder) || is_of_postgres(name)
}

fn is_of_postgres(name: &str) -> bool {
    let Ok(versions) = std::fs::read_dir(POSTGRES_VERSIONS) else { return false };
    versions.flatten().any(|version| version.path().join("bin").join(name).is_file())
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

/// The command line that installs `missing`, without its packages. The package index is refreshed
/// first: a new machine has none, and an old one names versions that are gone.
fn install_command(missing: &[&Program], installer: Installer) -> Result<Vec<&'static str>> {
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
    let shell: &[&str] = &["env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", INSTALL, "install"];
    Ok([prefix, shell].concat())
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

fn run(words: &[&str], packages: &[&str]) -> Result<()> {
    let line = format!("apt-get install {} (services are not started)", packages.join(" "));
    let (program, arguments) = words.split_first().context("an empty command line")?;
    println!("$ {line}");
    let status = Command::new(program)
        .args(arguments)
        .args(packages)
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
        TESTS.iter().collect()
    }

    #[test]
    fn root_needs_no_sudo() {
        assert_eq!(choose_installer(true, true, false), Installer::Apt);
        let line = install_command(&all(), Installer::Apt).unwrap();
        assert!(line.starts_with(&["env", "DEBIAN_FRONTEND=noninteractive", "sh"]), "{line:?}");
        assert!(packages(&all()).starts_with(&["chromium", "chromium-driver", "nodejs"]));
    }

    #[test]
    fn others_go_through_sudo() {
        assert_eq!(choose_installer(true, false, true), Installer::SudoApt);
        let line = install_command(&all(), Installer::SudoApt).unwrap();
        assert!(line.starts_with(&["sudo", "env"]), "{line:?}");
    }

    #[test]
    fn without_rights_the_message_is_the_command_to_run() {
        assert_eq!(choose_installer(true, false, false), Installer::NotPermitted);
        let error = install_command(&all(), Installer::NotPermitted).unwrap_err();
        assert!(error.to_string().contains("apt-get install chromium chromium-driver nodejs"));
    }

    #[test]
    fn without_apt_the_message_names_every_program() {
        assert_eq!(choose_installer(false, true, true), Installer::Unknown);
        let message = install_command(&all(), Installer::Unknown).unwrap_err().to_string();
        assert!(TESTS.iter().all(|program| message.contains(program.name)), "{message}");
    }

    #[test]
    fn a_program_is_looked_for_on_path() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no-such-program-of-kefu"));
    }

    #[test]
    fn no_service_is_started_while_packages_are_installed() {
        let folder = tempfile::tempdir().unwrap();
        let (policy, seen) = (folder.path().join("policy-rc.d"), folder.path().join("seen"));
        let script = INSTALL.replace("/usr/sbin/policy-rc.d", policy.to_str().unwrap());
        let apt = folder.path().join("apt-get");
        let pretend =
            format!("#!/bin/sh\n{}; echo \"$?\" \"$@\" >>{}\n", policy.display(), seen.display());
        std::fs::write(&apt, pretend).unwrap();
        let line =
            r#"chmod 755 "$1/apt-get"; PATH="$1:$PATH" exec sh -c "$2" install redis-server"#;
        let arguments = ["-c", line, "sh", folder.path().to_str().unwrap(), &script];
        let status = Command::new("sh").args(arguments).status().unwrap();
        assert!(status.success());
        let seen = std::fs::read_to_string(seen).unwrap();
        assert_eq!(
            seen, "101 update\n101 install --yes --no-install-recommends redis-server\n",
            "101 forbids to start a service"
        );
        assert!(!policy.exists(), "the policy is taken back");
    }
}
