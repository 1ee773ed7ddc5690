//! Figures of a server from the process table: its child processes count too.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Ticks of a second, on every Linux we run on.
const TICKS: f64 = 100.0;

/// Open files beyond the connections.
const SPARE_FILES: u64 = 200;

/// A process and all its descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        // A process may be gone by now.
        if let Some(stat) =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|text| Stat::parse(&text))
        {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Seconds of CPU they have used so far.
pub(crate) fn cpu_seconds(pids: &[u32]) -> f64 {
    let stat = |pid: &u32| Stat::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    pids.iter().filter_map(stat).map(|stat| stat.ticks as f64 / TICKS).sum()
}

/// Seconds of CPU it has used so far, with those of its children that have ended.
pub(crate) fn cpu_seconds_with_children(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    Stat::parse(&text).map_or(0.0, |stat| (stat.ticks + stat.ended_ticks) as f64 / TICKS)
}

/// Bytes of memory they hold.
pub(crate) fn memory_bytes(pids: &[u32]) -> u64 {
    let resident = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    pids.iter().filter_map(resident).sum::<u64>() * 1024
}

/// Processes that wanted to run in the last minute, of the whole machine.
pub(crate) fn load_average() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    Ok(text.split_whitespace().next().context("a load")?.parse()?)
}

/// Ends a process at once, by its id.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Keeps this thread on the first core, and what is started from it.
pub(crate) fn stay_on_first_core() -> Result<()> {
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(None, &first).context("cannot stay on the first core")
}

/// As many open files as the machine allows, which must do for so many connections; what is started from here inherits
/// it.
pub(crate) fn raise_file_limit(connections: u64) -> Result<()> {
    let wanted = connections + SPARE_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    if current != maximum {
        setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")?;
    }
    match maximum {
        Some(most) if most < wanted => anyhow::bail!("the limit of open files is {most}, not {wanted}: raise it"),
        _ => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// In user and in system mode.
    ticks: u64,
    /// Of children that have ended.
    ended_ticks: u64,
}

impl Stat {
    /// The name in parentheses may hold anything, so fields are counted from the last one.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(number(1)?).ok()?,
            ticks: number(11)? + number(12)?,
            ended_ticks: number(13)? + number(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_process_table() {
        let text = "42 (a (b) c) S 7 42 42 0 -1 4194304 1 0 0 0 150 25 3 4 20 0 1 0 5 6 7";
        assert_eq!(Stat::parse(text), Some(Stat { parent: 7, ticks: 175, ended_ticks: 7 }));
        assert_eq!(Stat::parse("42 (x) S"), None);
    }

    #[test]
    fn we_are_in_the_tree_of_our_parent() {
        let own = std::process::id();
        assert!(tree(std::os::unix::process::parent_id()).contains(&own));
        assert!(memory_bytes(&[own]) > 0);
    }
}
