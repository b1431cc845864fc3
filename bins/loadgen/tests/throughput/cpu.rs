//! How much processor time the programs of a run have used, from `/proc` (Linux).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Clock ticks a second in `/proc/<pid>/stat`: 100 on every Linux that Rust runs on (`proc(5)`).
const TICKS: f64 = 100.0;

/// Seconds of processor time by program: this process, everything it started, and PostgreSQL, which
/// has let go of who started it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cpu(BTreeMap<String, f64>);

struct Process {
    parent: u32,
    program: String,
    seconds: f64,
}

impl Cpu {
    /// What was used until now. `postgres` is the server's first process.
    pub(crate) fn now(postgres: u32) -> Self {
        let processes: BTreeMap<u32, Process> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, process(pid)?)))
            .collect();
        let mut mine = BTreeSet::from([std::process::id(), postgres]);
        loop {
            let children = processes.iter().filter(|(_, process)| mine.contains(&process.parent));
            let children: Vec<u32> =
                children.map(|(pid, _)| *pid).filter(|pid| !mine.contains(pid)).collect();
            if children.is_empty() {
                break;
            }
            mine.extend(children);
        }
        let mut seconds = BTreeMap::new();
        for process in mine.iter().filter_map(|pid| processes.get(pid)) {
            *seconds.entry(process.program.clone()).or_default() += process.seconds;
        }
        Self(seconds)
    }

    /// What was used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |program: &str| earlier.0.get(program).copied().unwrap_or_default();
        Self(self.0.iter().map(|(name, now)| (name.clone(), now - before(name))).collect())
    }

    /// Of one program.
    pub(crate) fn of(&self, program: &str) -> f64 {
        self.0.get(program).copied().unwrap_or_default()
    }

    /// Of kefu and the servers it stands on, without whoever loads them.
    pub(crate) fn servers(&self) -> f64 {
        ["gateway", "queue-drainer", "postgres", "redis-server"]
            .map(|name| self.of(name))
            .iter()
            .sum()
    }

    /// Of this process: the load itself, or a baseline's client.
    pub(crate) fn client(&self) -> f64 {
        let name = process(std::process::id()).map(|process| process.program).unwrap_or_default();
        self.of(&name)
    }
}

/// Its own time and that of the children it has waited for, since PostgreSQL's backends come and go.
fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may hold anything.
    let (head, tail) = stat.rsplit_once(')')?;
    let program = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let ticks = |from: usize, upto: usize| -> Option<f64> {
        fields.get(from..upto)?.iter().map(|field| field.parse::<f64>().ok()).sum()
    };
    // utime, stime, and for a server that starts processes of its own cutime, cstime.
    let upto = if program == "postgres" { 15 } else { 13 };
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        program,
        seconds: ticks(11, upto)? / TICKS,
    })
}
