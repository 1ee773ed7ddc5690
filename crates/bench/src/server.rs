//! A server under test: its own process, its CPU time from the process table, its end by its id.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::peer::System;

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    data: PathBuf,
}

impl Server {
    /// Starts it on a free port of loopback; `pinned` to the first core.
    pub(crate) fn start(system: System, pinned: bool) -> Result<Self> {
        let own = std::env::current_exe()?;
        let data = std::env::temp_dir().join(format!("turno-bench-{}", std::process::id()));
        let mut command = program(
            match system {
                System::Relay => own.clone(),
                System::Turno => own.with_file_name("turno"),
            },
            pinned,
        );
        match system {
            System::Relay => command.arg("relay"),
            System::Turno => command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(&data),
        };
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start the server")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("piped")?).read_line(&mut line)?;
        let address = match system {
            System::Relay => line.trim().to_owned(),
            System::Turno => {
                let ready: serde_json::Value = serde_json::from_str(&line).context("the broker's ready line")?;
                ready["native"].as_str().context("a native address")?.to_owned()
            }
        };
        Ok(Self { child, address: address.parse()?, data })
    }

    /// Seconds of CPU it has used so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        // utime and stime, in ticks of a hundredth of a second on every Linux we run on.
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    /// Bytes of memory it holds.
    pub(crate) fn memory_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
        let kib: u64 = line.split_whitespace().nth(1).context("VmRSS")?.parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing to be done about either.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
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
