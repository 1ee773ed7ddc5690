//! The environment of the configuration: facts of the machine, which tests can replace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::keys::{Key, Preset};
use super::value::{RawValue, Value};

/// Memory assumed when the machine does not tell.
const MEMORY_UNKNOWN: u64 = 8 << 30;

/// The surroundings of one command.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Environment variables that begin with `TURNO_`.
    pub environment: BTreeMap<String, String>,
    /// The user's configuration directory, `turno` not included.
    pub config_dir: Option<PathBuf>,
    /// The user's data directory, `turno` not included.
    pub data_dir: Option<PathBuf>,
    /// The machine-wide configuration directory.
    pub system_dir: PathBuf,
    /// The machine's name.
    pub host: String,
    /// Bytes of memory this process may use.
    pub memory: u64,
}

impl Environment {
    /// The facts of this machine.
    pub fn here() -> Self {
        let dirs = etcetera::base_strategy::Xdg::new().ok();
        let environment = std::env::vars_os()
            // A value that is not UTF-8 is kept as well as can be: it is then refused where it is read, not passed over.
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.to_string_lossy().into_owned())))
            .filter(|(name, _)| name.starts_with("TURNO_"))
            .collect();
        Self {
            environment,
            config_dir: dirs.as_ref().map(etcetera::BaseStrategy::config_dir),
            data_dir: dirs.as_ref().map(|dirs| dirs.data_dir()),
            system_dir: PathBuf::from("/etc/turno"),
            host: host_name(),
            memory: memory(Path::new("/")).unwrap_or(MEMORY_UNKNOWN),
        }
    }

    /// The environment variables that may set keys.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&String, &String)> {
        self.environment.iter()
    }

    /// A key's built-in value; the error says what is missing.
    pub fn default_of(&self, key: &Key) -> Result<Value, String> {
        match key.default {
            Preset::Text(text) => key.kind.read(&RawValue::Text(text.to_owned())),
            Preset::Empty => Ok(Value::List(Vec::new())),
            Preset::Nothing => Ok(Value::None),
            Preset::HostName => Ok(Value::Text(self.host.clone())),
            // Whole MiB: nobody wants to read more digits.
            Preset::HalfOfMemory => Ok(Value::Size(((self.memory / 2) >> 20).max(1) << 20)),
            Preset::DataDirectory => match &self.data_dir {
                Some(dir) => Ok(Value::Path(dir.join("turno"))),
                None => Err("no home directory; set `data` (or --data, TURNO_DATA)".to_owned()),
            },
        }
    }
}

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "turno".to_owned() } else { name }
}

/// The machine's memory, or the control group's share of it if that is less.
fn memory(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim();
        kib.parse::<u64>().ok()?.checked_mul(1024)
    })?;
    Some(group_limits(root).into_iter().fold(total, u64::min))
}

/// The limits of each level of this process's control group; levels without a limit say `max`.
fn group_limits(root: &Path) -> Vec<u64> {
    let Ok(text) = fs::read_to_string(root.join("proc/self/cgroup")) else { return Vec::new() };
    let Some(group) = text.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let base = root.join("sys/fs/cgroup");
    let own = base.join(group);
    own.ancestors()
        .take_while(|level| level.starts_with(&base))
        .filter_map(|level| fs::read_to_string(level.join("memory.max")).ok()?.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_lowers_the_memory() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(memory(root.path()), None);
        put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
        assert_eq!(memory(root.path()), Some(16 << 20));
        put("proc/self/cgroup", "0::/user.slice/turno.service\n");
        put("sys/fs/cgroup/user.slice/turno.service/memory.max", "max\n");
        assert_eq!(memory(root.path()), Some(16 << 20));
        put("sys/fs/cgroup/user.slice/memory.max", "8388608\n");
        assert_eq!(memory(root.path()), Some(8 << 20));
    }
}
