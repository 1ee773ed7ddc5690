//! A server under test: its own process on loopback, with a folder of its own, ended by its id.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FsWord, statfs};

use crate::peers::{self, Launch};
use crate::process;
use crate::system::System;

/// RabbitMQ takes seconds; nobody takes longer.
const START_MAX: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where a server keeps what is sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// As it does by itself: for works that send nothing to be kept.
    ByDefault,
    /// In memory, whatever it does by itself.
    Memory,
    /// On disk, and synced before it answers.
    Disk,
}

pub(crate) struct Server {
    /// The server itself last; before it what it needs.
    children: Vec<Child>,
    pub(crate) address: SocketAddr,
    /// Where job workers find Turno's foreman.
    pub(crate) foreman: SocketAddr,
    /// Where ZeroMQ programs find Turno, one address for each endpoint that listens.
    pub(crate) zmq: Vec<SocketAddr>,
    /// On the file system that the build is on: where folders for passing things usually are may be no disk.
    pub(crate) data: PathBuf,
}

impl Server {
    /// Starts it on a free port; `pinned` to the first core. Settings are names and values of its environment; those that
    /// it does not know change nothing. It takes connections once this returns.
    pub(crate) fn start(system: System, pinned: bool, keeps: Keeps, settings: &[(&str, String)]) -> Result<Self> {
        let mut server = Self::in_new_folder()?;
        if keeps == Keeps::Disk {
            check_is_disk(&server.data)?;
        }
        match system {
            System::Relay | System::Turno => drop(server.start_own(system, pinned, keeps, settings)?),
            peer => server.start_peer(peer, pinned, keeps, settings)?,
        }
        Ok(server)
    }

    /// Turno's, with a configuration file beside the settings.
    pub(crate) fn configured(pinned: bool, configuration: &str, settings: &[(&str, String)]) -> Result<Self> {
        let mut server = Self::in_new_folder()?;
        let file = server.data.join("turno.toml");
        std::fs::write(&file, configuration)?;
        let settings = [settings, &[("TURNO_CONFIG", file.display().to_string())]].concat();
        server.start_own(System::Turno, pinned, Keeps::ByDefault, &settings)?;
        Ok(server)
    }

    /// One that is not started. Whatever goes wrong from here on, what was started is ended.
    fn in_new_folder() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let data = std::env::current_exe()?.with_file_name(format!("bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&data)?;
        let unknown = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self { children: Vec::new(), address: unknown, foreman: unknown, zmq: Vec::new(), data })
    }

    /// Ends Turno's server without a warning and starts it again with what it had. How long it took until it was ready.
    pub(crate) fn restart(&mut self, keeps: Keeps, settings: &[(&str, String)]) -> Result<Duration> {
        self.stop();
        self.start_own(System::Turno, false, keeps, settings)
    }

    /// Ends it without a warning. Its folder stays for as long as this lives.
    pub(crate) fn stop(&mut self) {
        for mut child in self.children.drain(..).rev() {
            // The last of them are its own children, which would be left behind.
            for pid in process::tree(child.id()) {
                process::kill(pid);
            }
            let _ = child.wait();
        }
    }

    /// Ours say where they listen. How long that took.
    fn start_own(
        &mut self,
        system: System,
        pinned: bool,
        keeps: Keeps,
        settings: &[(&str, String)],
    ) -> Result<Duration> {
        let own = std::env::current_exe()?;
        let mut command = if system == System::Relay {
            let mut command = program(own, pinned);
            command.arg("relay");
            command
        } else {
            let mut command = program(own.with_file_name("turno"), pinned);
            command
                .args(["serve", "--json", "--listen", "127.0.0.1:0", "--foreman-listen", "127.0.0.1:0", "--data"])
                .arg(&self.data);
            command.envs(settings.iter().map(|(name, value)| (name, value)));
            match keeps {
                Keeps::ByDefault => {}
                Keeps::Memory => drop(command.env("TURNO_PERSISTENCE", "memory")),
                Keeps::Disk => drop(command.env("TURNO_PERSISTENCE", "disk")),
            }
            command
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut child = command.spawn().context("cannot start the server")?;
        let output = child.stdout.take().context("piped")?;
        self.children.push(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let took = begun.elapsed();
        let address = if system == System::Relay {
            line.trim().to_owned()
        } else {
            let ready: serde_json::Value = serde_json::from_str(&line).context("the broker's ready line")?;
            if let Some(why) = ready["error"]["message"].as_str() {
                bail!("the broker does not start: {why}");
            }
            self.foreman = ready["foreman"].as_str().context("a foreman's address")?.parse()?;
            self.zmq = zmq_addresses(&ready["zmq"])?;
            ready["native"].as_str().context("a native address")?.to_owned()
        };
        self.address = address.parse()?;
        Ok(took)
    }

    /// Peers are told where to listen, and are there once they do.
    fn start_peer(&mut self, system: System, pinned: bool, keeps: Keeps, settings: &[(&str, String)]) -> Result<()> {
        let [port, mapper, other] = free_ports()?;
        self.address.set_port(port);
        let launch = Launch {
            port,
            more_ports: [mapper, other],
            data: self.data.clone(),
            pinned,
            durable: keeps == Keeps::Disk,
        };
        let log = self.data.join("output");
        for mut command in peers::commands(system, &launch) {
            let output = File::options().create(true).append(true).open(&log)?;
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).current_dir(&self.data);
            command.envs(settings.iter().map(|(name, value)| (name, value)));
            let started = command.spawn();
            self.children.push(started.with_context(|| format!("cannot start the server of {system}"))?);
        }
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = match self.children.last_mut() {
                Some(child) => child.try_wait()?,
                None => None,
            };
            if let Some(status) = ended {
                bail!("the server of {system} ended: {status}: {}", last_line(&log));
            }
            if begun.elapsed() > START_MAX {
                bail!("the server of {system} does not listen: {}", last_line(&log));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// The ids of the server's processes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.children.last().map(|child| process::tree(child.id())).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        // Nothing hangs on a folder that stays behind.
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// The addresses of endpoints, as the ready line has them.
fn zmq_addresses(listed: &serde_json::Value) -> Result<Vec<SocketAddr>> {
    let of = |one: &serde_json::Value| {
        let address = one.as_str().and_then(|text| text.strip_prefix("tcp://")).context("an address of TCP")?;
        anyhow::Ok(address.parse()?)
    };
    listed.as_array().context("a list of endpoints")?.iter().map(of).collect()
}

/// A file system in memory would make any sync a matter of nothing.
fn check_is_disk(folder: &Path) -> Result<()> {
    const TMPFS: FsWord = 0x0102_1994;
    const RAMFS: FsWord = 0x8584_58F6;
    let kind = statfs(folder).context("cannot ask what file system this is")?.f_type;
    if matches!(kind, TMPFS | RAMFS) {
        bail!("{} is in memory: durable works want a disk", folder.display());
    }
    Ok(())
}

/// The setting for so many routers.
pub(crate) fn routers(count: usize) -> (&'static str, String) {
    ("TURNO_ROUTERS", count.to_string())
}

/// A program, on the first core if it is to be pinned.
pub(crate) fn program(path: PathBuf, pinned: bool) -> Command {
    if !pinned {
        return Command::new(path);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(path);
    command
}

/// Ports that nobody listens on, told apart by being held together.
pub(crate) fn free_ports() -> Result<[u16; 3]> {
    let listeners = [0; 3].map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}
