//! The watcher: a process that does nothing until its worker is dead.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::job_worker::scratch;
use crate::job_worker::task::WORKER_ID;
use crate::process::{GRACE, group_of, is_alive, processes};

/// How often groups that were told to end are looked at.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// How often processes are looked for that a dying one may have started.
const ROUNDS: usize = 5;

/// The worker's lines before its end.
#[derive(Debug, Default, PartialEq, Eq)]
struct WatcherInput {
    groups: BTreeSet<i32>,
    bye: bool,
}

/// Runs the watcher: the words after [`super::WORD`] are the worker's id and its directory.
pub(crate) fn watch(words: &[OsString]) -> ExitCode {
    let [worker, directory] = words else { return ExitCode::from(2) };
    // A signal to all processes must end the worker and not its watcher first.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let _entered = runtime.enter();
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    let _caught: Vec<_> = kinds.into_iter().map(signal).collect();
    let heard = listen(io::stdin().lock());
    if !heard.bye {
        end_all(heard.groups, worker);
        scratch::remove(Path::new(directory));
    }
    ExitCode::SUCCESS
}

/// Listens until the pipe ends.
fn listen(mut pipe: impl io::BufRead) -> WatcherInput {
    let mut heard = WatcherInput::default();
    let mut line = String::new();
    loop {
        line.clear();
        match pipe.read_line(&mut line) {
            Ok(0) | Err(_) => return heard,
            Ok(_) => {}
        }
        let (word, number) = line.trim_end().split_at_checked(1).unwrap_or_default();
        match (word, number.parse()) {
            ("+", Ok(group)) => drop(heard.groups.insert(group)),
            ("-", Ok(group)) => drop(heard.groups.remove(&group)),
            _ => heard.bye = line == "bye\n",
        }
    }
}

/// TERM, 5 s, KILL: for the groups that the worker told of, and for what bears its mark. One that it started with its
/// last breath it did not tell of.
fn end_all(told: BTreeSet<i32>, worker: &OsString) {
    let mut groups: HashSet<Pid> = told.into_iter().filter_map(Pid::from_raw).collect();
    groups.extend(marked(worker));
    for group in &groups {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let end = Instant::now() + GRACE;
    while Instant::now() < end && groups.iter().any(|group| is_alive(*group)) {
        std::thread::sleep(LOOK);
    }
    for _ in 0..ROUNDS {
        for group in &groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        groups = marked(worker);
        if groups.is_empty() {
            break;
        }
    }
}

/// The groups of processes that have the worker's id in their environment.
fn marked(worker: &OsString) -> HashSet<Pid> {
    let mark = [WORKER_ID.as_bytes(), b"=", worker.as_encoded_bytes()].concat();
    let has_mark = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == mark)
    };
    let marked = processes().into_iter().flatten().filter(has_mark);
    let groups = marked.filter_map(|process| group_of(&process).filter(|(_, runs)| *runs));
    groups.map(|(group, _)| group).filter(|group| *group != getpgrp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_worker_says() {
        let heard = |text: &str| listen(text.as_bytes());
        let groups = |list: &[i32]| list.iter().copied().collect::<BTreeSet<i32>>();
        assert_eq!(heard("+12\n+13\n-12\n"), WatcherInput { groups: groups(&[13]), bye: false });
        assert_eq!(heard("+12\n-12\nbye\n"), WatcherInput { groups: groups(&[]), bye: true });
        assert_eq!(
            heard("bye\n+12\n"),
            WatcherInput { groups: groups(&[12]), bye: true },
            "nothing follows it, really"
        );
        assert_eq!(heard(""), WatcherInput::default());
        assert_eq!(heard("\n+\n+x\n-99\nwhat\n"), WatcherInput::default());
    }
}
