//! What the system tells about a process of ours.

use std::fs;

/// Memory it really uses, in KiB.
pub fn rss_kib(id: u32) -> u64 {
    field(id, "VmRSS:")
}

/// The most memory it ever really used, in KiB.
pub fn peak_kib(id: u32) -> u64 {
    field(id, "VmHWM:")
}

fn field(id: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a running process of ours");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux tells it");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number of KiB")
}

/// Sockets it has open.
pub fn sockets(id: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{id}/fd")).expect("a running process of ours");
    files
        .flatten()
        .filter(|file| fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:")))
        .count()
}
