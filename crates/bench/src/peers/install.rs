//! Installs the peers' Debian packages, without letting the packages start services of their own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use xtask::packages;

use super::zmq;
use crate::system::System;

/// Debian asks this program before it starts a service; status 101 means no.
const POLICY_FILE: &str = "/usr/sbin/policy-rc.d";
const POLICY: &str = "#!/bin/sh\nexit 101\n";

/// Where Debian puts servers, beyond the usual path.
const FOLDERS: [&str; 3] = ["/usr/lib/rabbitmq/bin", "/usr/sbin", "/usr/bin"];

struct Package {
    name: &'static str,
    /// A file that is there once it is installed.
    proof: &'static str,
}

const fn package(system: System) -> Option<Package> {
    let (name, proof) = match system {
        System::Relay | System::Turno => return None,
        System::Nats => ("nats-server", "nats-server"),
        System::Zmq => ("libzmq3-dev", "/usr/include/zmq.h"),
        System::Redis => ("redis-server", "redis-server"),
        System::Gearman => ("gearman-job-server", "gearmand"),
        System::Beanstalkd => ("beanstalkd", "beanstalkd"),
        System::RabbitMq => ("rabbitmq-server", "rabbitmq-server"),
    };
    Some(Package { name, proof })
}

/// Whether its server could be started as things are.
pub(crate) fn is_there(system: System) -> bool {
    package(system).is_none_or(|package| find(package.proof).is_some())
}

/// Makes sure that the peer's server can be started.
pub(crate) fn ensure(system: System) -> Result<()> {
    let Some(package) = package(system) else { return Ok(()) };
    if !is_there(system) {
        println!("{system} is missing, installing {}", package.name);
        let _no_services = NoServices::begin();
        packages::install(package.name).map_err(|why| anyhow!("{} cannot be installed: {why}", package.name))?;
        if !is_there(system) {
            bail!("{} is installed, but {} is not there", package.name, package.proof);
        }
    }
    if system == System::Zmq {
        let own = std::env::current_exe()?;
        zmq::compile(own.parent().context("our own folder")?)?;
    }
    Ok(())
}

/// The version of the installed package, without Debian's own part.
pub(crate) fn version(system: System) -> Option<String> {
    let name = package(system)?.name;
    let output =
        Command::new("dpkg-query").args(["-W", "-f", "${Version}", name]).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| upstream(&String::from_utf8_lossy(&output.stdout)))
}

/// A program of the path, of the folders Debian keeps servers in, or of our own folder.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    if Path::new(name).is_absolute() {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let own = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_path_buf));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian's own folders go first: what stands in the path may be a wrapper that changes the user.
    let folders = FOLDERS.iter().map(PathBuf::from).chain(std::env::split_paths(&path)).chain(own);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn upstream(version: &str) -> String {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let version = version.rsplit_once('-').map_or(version, |(before, _)| before);
    version.split('+').next().unwrap_or(version).to_owned()
}

/// While it lives, packages start no services. A policy that is there already is left alone.
struct NoServices {
    is_ours: bool,
}

impl NoServices {
    fn begin() -> Self {
        let write = || -> std::io::Result<()> {
            std::fs::File::create_new(POLICY_FILE)?;
            std::fs::write(POLICY_FILE, POLICY)?;
            std::fs::set_permissions(POLICY_FILE, std::fs::Permissions::from_mode(0o755))
        };
        Self { is_ours: write().is_ok() }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.is_ours {
            // It may be gone; then there is nothing to be done.
            let _ = std::fs::remove_file(POLICY_FILE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_lose_what_debian_adds() {
        for (debian, plain) in
            [("5:7.0.15-1~deb12u7", "7.0.15"), ("1.1.20+ds-1", "1.1.20"), ("1.12-2+b1", "1.12"), ("3", "3")]
        {
            assert_eq!(upstream(debian), plain);
        }
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-at-all").is_none());
        assert!(find("/no/such/file").is_none());
        assert!(System::PEERS.iter().all(|peer| package(*peer).is_some()));
        assert!(is_there(System::Relay));
    }
}
