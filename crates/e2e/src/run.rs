//! Commands: run to the end with a deadline, or in the background until dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// How a command ended.
#[derive(Debug)]
pub struct Run {
    /// Its exit code; 128 + signal if a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
}

impl Run {
    /// Runs a command to its end; one that does not end in time fails the test.
    pub fn finish(mut command: Command, input: &[u8], within: Duration) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().expect("the command starts");
        let feeder = child.stdin.take().map(|mut stdin| {
            let input = input.to_vec();
            // A command that ends early closes its input; that is its right.
            thread::spawn(move || drop(stdin.write_all(&input)))
        });
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        let what = format!("{command:?} ends");
        let Some(status) = wait::find(within, || child.try_wait().expect("our own child")) else {
            child.kill().expect("our own child");
            panic!("{what}: not within {within:?}");
        };
        if let Some(feeder) = feeder {
            feeder.join().expect("the feeder does not panic");
        }
        let stdout = stdout.join().expect("the reader does not panic");
        let stderr = stderr.join().expect("the reader does not panic");
        Self { code: code_of(status), stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as the one JSON document it must be.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?}\nstderr: {}", self.text(), self.stderr))
    }

    /// Fails the test unless the command ended with that code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error ends the collection as the end of the pipe does; the test looks at what came.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// A command that goes on beside the test. Dropping it kills it.
#[derive(Debug)]
pub struct Background {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    what: String,
}

impl Background {
    /// Starts a command.
    pub fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdout = lines(child.stdout.take().expect("piped"));
        let stderr = lines(child.stderr.take().expect("piped"));
        Self { child, stdout, stderr, what: format!("{command:?}") }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The lines of standard output so far.
    pub fn stdout(&self) -> Vec<String> {
        self.stdout.so_far()
    }

    /// The lines of standard error so far.
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.so_far()
    }

    /// Waits for a line of standard output or error that holds this text.
    #[track_caller]
    pub fn expect_line(&self, text: &str) -> String {
        let found = wait::find(wait::PATIENCE, || {
            self.stdout().into_iter().chain(self.stderr()).find(|line| line.contains(text))
        });
        found.unwrap_or_else(|| {
            panic!("{}: no line with {text:?}\nstdout: {:?}\nstderr: {:?}", self.what, self.stdout(), self.stderr())
        })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("our own child");
    }

    /// Waits for its end and returns its exit code. All that it printed is there then.
    #[track_caller]
    pub fn end(&mut self, within: Duration) -> i32 {
        let status = wait::find(within, || self.child.try_wait().expect("our own child"));
        // A program that it started may hold its output open for longer; the readers are done with its own by then.
        wait::find(Duration::from_secs(5), || (self.stdout.over() && self.stderr.over()).then_some(()));
        match status {
            Some(status) => code_of(status),
            None => panic!("{} did not end within {within:?}\nstderr: {:?}", self.what, self.stderr()),
        }
    }

    /// True while it runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_none()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a pipe, as they come.
#[derive(Debug)]
struct Lines {
    lines: Arc<Mutex<Vec<String>>>,
    reader: thread::JoinHandle<()>,
}

impl Lines {
    fn so_far(&self) -> Vec<String> {
        self.lines.lock().expect("readers do not panic").clone()
    }

    fn over(&self) -> bool {
        self.reader.is_finished()
    }
}

fn lines(from: impl Read + Send + 'static) -> Lines {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&lines);
    let reader = thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            into.lock().expect("readers do not panic").push(line);
        }
    });
    Lines { lines, reader }
}
