//! Looking at processes that a test started, through `/proc`.

use std::fs;

/// Whether a process still does something. One that ended and was not yet reaped does not.
pub fn alive(id: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    // The name before it may hold anything, even brackets.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// The processes that it started and that still do something.
pub fn children(id: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: &u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name before it may hold anything, even brackets.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    ids.filter(|child| parent(child) == Some(id) && alive(*child)).collect()
}

/// The most memory a process has had so far, in bytes; 0 if it is gone.
pub fn memory_peak(id: u32) -> u64 {
    memory(id, "VmHWM:")
}

/// The memory a process has now, in bytes; 0 if it is gone.
pub fn memory_now(id: u32) -> u64 {
    memory(id, "VmRSS:")
}

fn memory(id: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// Sockets a process has open; 0 if it is gone.
pub fn sockets(id: u32) -> usize {
    let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else { return 0 };
    let socket = |path| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    files.flatten().filter(|file| socket(file.path())).count()
}

/// Threads of a process whose names begin like this; 0 if it is gone.
pub fn threads(id: u32, name: &str) -> usize {
    let Ok(tasks) = fs::read_dir(format!("/proc/{id}/task")) else { return 0 };
    let named =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.starts_with(name));
    tasks.flatten().filter(named).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_has_memory() {
        assert!(alive(std::process::id()));
        assert!(memory_peak(std::process::id()) > 100_000);
        assert!(!alive(u32::MAX));
        assert_eq!(memory_peak(u32::MAX), 0);
    }
}
