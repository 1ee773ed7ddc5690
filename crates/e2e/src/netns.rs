//! Network namespaces of a test's own: hosts with one address each, at one bridge, that nobody outside sees.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::door::Door;
use crate::process;

/// Where `ip` keeps the names of namespaces.
const NAMES: &str = "/run/netns";

/// The prefix of our names; the id of the process follows, then which of its networks it is.
const PREFIX: &str = "turno-";

/// An address of the link layer that nobody has: what is sent there arrives nowhere.
const NOBODY: &str = "02:00:00:00:00:fe";

/// The namespaces of one network. Dropping them removes them; processes that are still inside keep theirs until they end.
#[derive(Debug)]
pub(crate) struct Namespaces {
    prefix: String,
    hosts: usize,
}

impl Namespaces {
    /// As many hosts as that, all up. Why not, if the machine does not allow it.
    pub(crate) fn make(hosts: usize) -> Result<Self, String> {
        static NETWORKS: AtomicUsize = AtomicUsize::new(0);
        remove_leftovers();
        let network = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let made = Self { prefix: format!("{PREFIX}{}-{network}-", std::process::id()), hosts };
        // Parts that were made before a failure are removed with `made`.
        let bridge = made.bridge();
        ip(&["netns", "add", &bridge])?;
        ip(&["-n", &bridge, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", &bridge, "link", "set", "bridge", "up"])?;
        for host in 0..hosts {
            let (name, port, address) = (made.name(host), port(host), format!("{}/24", address(host)));
            ip(&["netns", "add", &name])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
            let pair = ["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &name];
            ip(&[&["-n", &bridge], &pair[..]].concat())?;
            ip(&["-n", &bridge, "link", "set", &port, "master", "bridge", "up"])?;
            ip(&["-n", &name, "address", "add", &address, "dev", "eth0"])?;
            ip(&["-n", &name, "link", "set", "eth0", "up"])?;
            // Seen to be usable by the two ways in which tests get inside.
            made.door(host).map_err(|error| format!("{name} cannot be opened: {error}"))?;
            let words = made.under(host);
            say(Command::new(&words[0]).args(&words[1..]).arg("true"))?;
        }
        Ok(made)
    }

    /// The address of a host.
    pub(crate) const fn ip(&self, host: usize) -> IpAddr {
        IpAddr::V4(address(host))
    }

    /// The way in for threads of the test.
    pub(crate) fn door(&self, host: usize) -> std::io::Result<Door> {
        Door::open(&file(&self.name(host)))
    }

    /// The words before a command that starts it there.
    pub(crate) fn under(&self, host: usize) -> Vec<String> {
        // Not `ip netns exec`, which also makes another view of the file system.
        vec!["nsenter".to_owned(), format!("--net={}", file(&self.name(host)).display()), "--".to_owned()]
    }

    /// Pulls a host's cable, or puts it back.
    pub(crate) fn cable(&self, host: usize, plugged: bool) {
        let state = if plugged { "up" } else { "down" };
        must(&["-n", &self.bridge(), "link", "set", &port(host), state]);
    }

    /// Nothing that one host says to another arrives there; what the other says does.
    pub(crate) fn mute(&self, from: usize, to: usize) {
        let (name, address) = (self.name(from), address(to).to_string());
        must(&["-n", &name, "neighbour", "replace", &address, "lladdr", NOBODY, "dev", "eth0", "nud", "permanent"]);
    }

    /// It arrives again.
    pub(crate) fn unmute(&self, from: usize, to: usize) {
        must(&["-n", &self.name(from), "neighbour", "delete", &address(to).to_string(), "dev", "eth0"]);
    }

    fn name(&self, host: usize) -> String {
        format!("{}{host}", self.prefix)
    }

    fn bridge(&self) -> String {
        format!("{}bridge", self.prefix)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let hosts = (0..self.hosts).map(|host| self.name(host));
        for name in hosts.chain([self.bridge()]).filter(|name| file(name).exists()) {
            // A test that fails already must not fail once more here; the next run removes what is left.
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

/// The end of a host's cable at the bridge.
fn port(host: usize) -> String {
    format!("port{host}")
}

const fn address(host: usize) -> Ipv4Addr {
    assert!(host < 250, "one network has 250 hosts at most");
    #[expect(clippy::cast_possible_truncation, reason = "below 250")]
    Ipv4Addr::new(10, 77, 0, 1 + host as u8)
}

fn file(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Removes what runs left behind that were killed.
fn remove_leftovers() {
    let Ok(names) = std::fs::read_dir(NAMES) else { return };
    for name in names.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok());
        if owner.is_some_and(|id| !process::alive(id)) {
            // Another test may be at it at the same time.
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

fn must(words: &[&str]) {
    ip(words).unwrap_or_else(|why| panic!("{why}"));
}

fn ip(words: &[&str]) -> Result<(), String> {
    say(Command::new("ip").args(words))
}

fn say(command: &mut Command) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let why = String::from_utf8_lossy(&done.stderr);
    if done.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", why.trim())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only where namespaces can be made there are any to leave behind.
    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let Ok(ours) = Namespaces::make(1) else { return };
        let mut killed = Command::new("true").spawn().expect("it starts");
        killed.wait().expect("our own child");
        let left = format!("{PREFIX}{}-0-bridge", killed.id());
        must(&["netns", "add", &left]);
        remove_leftovers();
        assert!(!file(&left).exists());
        assert!(file(&ours.name(0)).exists() && file(&ours.bridge()).exists());
        let names = [ours.name(0), ours.bridge()];
        drop(ours);
        assert!(names.iter().all(|name| !file(name).exists()));
    }
}
