//! The machine a run was on.

use crate::report::Machine;

pub(crate) fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    Machine {
        cpu: cpu_model(&read("/proc/cpuinfo")).unwrap_or("unknown").to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: series(read("/proc/sys/kernel/osrelease").trim()),
    }
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// The kernel's series: who built it, and how often, says nothing about a figure.
fn series(release: &str) -> String {
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: A  B\nmodel name\t: C\n"), Some("A  B"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn a_kernel_is_told_by_its_series() {
        assert_eq!(series("6.12.9-1-amd64"), "6.12");
        assert_eq!(series(""), "");
    }
}
