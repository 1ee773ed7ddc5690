//! A directory of its own for each test, and an environment that nothing outside leaks into.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::run::{Background, Run};
use crate::wait;

/// The variable with the number of routers that brokers shall have in this run of the tests.
const ROUTERS: &str = "TURNO_TEST_ROUTERS";

/// A fresh home.
#[derive(Debug)]
pub struct Place {
    directory: TempDir,
    url: Option<String>,
    /// The prefix of every command of this place, such as `nsenter`.
    under: Vec<String>,
}

impl Place {
    /// An empty place.
    pub fn new() -> Self {
        Self::under(Vec::new())
    }

    /// An empty place whose commands are all started by another program that becomes them.
    pub(crate) fn under(under: Vec<String>) -> Self {
        // Short, because the path of a Unix socket must be.
        let directory = tempfile::Builder::new().prefix("turno-").tempdir().expect("a temporary directory");
        Self { directory, url: None, under }
    }

    /// Commands run here go to this broker unless they say otherwise.
    pub fn set_url(&mut self, url: String) {
        self.url = Some(url);
    }

    /// The place's directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where a broker of this place keeps its data unless told otherwise.
    pub fn data(&self) -> PathBuf {
        self.path().join("data/turno")
    }

    /// The program itself, for those who start it in ways of their own.
    pub fn turno_path() -> PathBuf {
        binary()
    }

    /// `turno` with these arguments, not yet started. Brokers have as many routers as the whole run is to have.
    pub fn turno<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.turno_under(&[], arguments)
    }

    /// The same, started by another program that becomes it, such as `fiu-run`.
    pub fn turno_under<A: AsRef<OsStr>>(&self, by: &[&str], arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = match by.split_first() {
            None => self.command(binary()),
            Some((program, rest)) => {
                let mut command = self.command(program);
                command.args(rest).arg(binary());
                command
            }
        };
        command.args(arguments);
        if let Some(routers) = std::env::var_os(ROUTERS)
            && command.get_args().any(|argument| argument == "serve")
        {
            command.env("TURNO_ROUTERS", routers);
        }
        command
    }

    /// Any program, in this place's environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self.under.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = vec![binary().parent().expect("the binary is in a directory").to_owned()];
        paths.extend(std::env::split_paths(&path));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(paths).expect("paths without colons"))
            .env("HOME", self.path())
            .env("XDG_DATA_HOME", self.path().join("data"))
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir(self.path())
            .stdin(Stdio::null());
        if let Some(url) = &self.url {
            command.env("TURNO_URL", url);
        }
        command
    }

    /// Runs `turno` to its end.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Run {
        Run::finish(self.turno(arguments), b"", wait::PATIENCE)
    }

    /// Runs `turno` to its end with this on its standard input.
    pub fn run_with_input<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>, input: &[u8]) -> Run {
        Run::finish(self.turno(arguments), input, wait::PATIENCE)
    }

    /// Starts `turno` in the background.
    pub fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Background {
        Background::start(self.turno(arguments))
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a directory in the test's own place");
        }
        std::fs::write(&path, content).expect("a file in the test's own place");
        path
    }

    /// Writes an executable shell script and returns its path.
    pub fn script(&self, name: &str, body: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name, &format!("#!/bin/sh\n{body}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("our own file");
        path
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// The real binary: beside the directory the test program runs from.
pub(crate) fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let binary = test.ancestors().skip(1).map(|directory| directory.join("turno")).find(|path| path.is_file());
    binary.expect("build the binary first: `cargo build -p turno`, or run `cargo xtask test`")
}
