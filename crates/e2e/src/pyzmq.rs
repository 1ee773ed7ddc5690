//! Programs with sockets of the real libzmq, and brokers for them.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::broker::Broker;
use crate::place::Place;
use crate::run::Run;
use crate::wait;

impl Broker {
    /// A broker with a configuration file and the usual endpoint for ZeroMQ at a free port.
    pub fn start_for_zmq(config: &str) -> Self {
        Self::start_for_zmq_in(Place::new(), config, &["--zmq-listen", "127.0.0.1:0"])
    }

    /// The same in a place that is there already, with these flags.
    pub fn start_for_zmq_in(place: Place, config: &str, flags: &[&str]) -> Self {
        let directory = place.path().join("config/turno");
        fs::create_dir_all(&directory).expect("our own place");
        fs::write(directory.join("turno.toml"), config).expect("our own place");
        Self::start_in(place, flags)
    }

    /// The address of an endpoint that listens, by its place among them.
    pub fn zmq_url(&self, place: usize) -> String {
        self.ready()["zmq"][place].as_str().expect("an endpoint").to_owned()
    }

    /// The address of its first endpoint for LMQ.
    pub fn lmq_url(&self) -> String {
        self.ready()["lmq"][0].as_str().expect("an endpoint").to_owned()
    }

    /// The document of `zmq show --json` about an endpoint.
    pub fn endpoint(&self, name: &str) -> Value {
        self.run(&["zmq", "show", name, "--json"]).expect(0).json()["endpoint"].take()
    }
}

/// The Python that has pyzmq, with a program of `python/`.
fn python(program: &str) -> Command {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let python = root.join("target/pyzmq/bin/python");
    assert!(
        python.exists(),
        "pyzmq is missing: `cargo xtask test` installs it, or type \
         `python3 -m venv target/pyzmq && target/pyzmq/bin/pip install pyzmq`"
    );
    let mut command = Command::new(python);
    command.arg(root.join("crates/e2e/python").join(program));
    command
}

/// A program with one socket that does one thing and ends, `python/peer.py`.
pub struct Pyzmq {
    ends: JoinHandle<Run>,
}

impl Pyzmq {
    /// Starts it. `given` says which socket it has.
    pub fn start(what: &str, given: &Value) -> Self {
        let mut command = python("peer.py");
        command.arg(what).arg(given.to_string());
        Self { ends: thread::spawn(move || Run::finish(command, &[], 2 * wait::PATIENCE)) }
    }

    /// Waits for its end; it must have been content with all it saw. Returns what it printed before that.
    #[track_caller]
    pub fn done(self) -> String {
        let text = self.ends.join().expect("the program ends").expect(0).text();
        text.strip_suffix("done\n").expect("the program says that it is done").to_owned()
    }
}

/// A program with many sockets that do what the test says, one thing after the other: `python/sockets.py`. Dropping it
/// kills it.
pub struct ZmqProgram {
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl ZmqProgram {
    /// Starts it.
    pub fn start() -> Self {
        let mut command = python("sockets.py");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, pipes: RefCell::new((stdin, BufReader::new(stdout))) }
    }

    /// A socket of that type with these options, such as `{"SNDHWM": 1}`.
    pub fn socket(&self, kind: &str, options: &Value) -> ZmqSocket<'_> {
        let number = self.call(&json!(["make", kind, options])).as_u64().expect("the number of a socket");
        ZmqSocket { program: self, number }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("our own child");
    }

    /// Has a function called. The program itself waits for [`wait::PATIENCE`] at most.
    #[track_caller]
    fn call(&self, line: &Value) -> Value {
        let mut pipes = self.pipes.borrow_mut();
        writeln!(pipes.0, "{line}").expect("the program listens");
        let mut answer = String::new();
        pipes.1.read_line(&mut answer).expect("the program answers");
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{line}: the program ended"))
    }
}

impl Drop for ZmqProgram {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A socket of a [`ZmqProgram`].
pub struct ZmqSocket<'a> {
    program: &'a ZmqProgram,
    number: u64,
}

impl ZmqSocket<'_> {
    #[track_caller]
    fn call(&self, name: &str, arguments: &[Value]) -> Value {
        let mut line = vec![json!(name), json!(self.number)];
        line.extend_from_slice(arguments);
        self.program.call(&line.into())
    }

    /// Connects.
    #[track_caller]
    pub fn connect(self, url: &str) -> Self {
        self.call("connect", &[url.into()]);
        self
    }

    /// Binds.
    #[track_caller]
    pub fn bind(self, url: &str) -> Self {
        self.call("bind", &[url.into()]);
        self
    }

    /// Sets an option.
    #[track_caller]
    pub fn set(&self, option: &str, value: impl Into<Value>) {
        self.call("set", &[option.into(), value.into()]);
    }

    /// Sends a message and waits until the socket takes it.
    #[track_caller]
    pub fn send<F: AsRef<[u8]>>(&self, frames: &[F]) {
        assert_eq!(self.call("send", &[texts(frames)]), "sent");
    }

    /// Sends a message if the socket takes it at once: `sent`, or the name of the error.
    #[track_caller]
    pub fn try_send<F: AsRef<[u8]>>(&self, frames: &[F]) -> String {
        self.call("try_send", &[texts(frames)]).as_str().expect("a word").to_owned()
    }

    /// Sends messages with one frame of so many bytes, which begin with their numbers, until there are so many or the socket
    /// takes none for so long. How many it took.
    #[track_caller]
    pub fn flood(&self, count: usize, bytes: usize, patience_ms: u32) -> usize {
        let sent = self.call("flood", &[count.into(), bytes.into(), patience_ms.into()]);
        usize::try_from(sent.as_u64().expect("a number")).expect("a small number")
    }

    /// Says this every second from now on.
    #[track_caller]
    pub fn beat<F: AsRef<[u8]>>(&self, frames: &[F]) {
        self.call("beat", &[texts(frames)]);
    }

    /// The next message.
    #[track_caller]
    pub fn recv(&self) -> Vec<Vec<u8>> {
        self.recv_many(1).remove(0)
    }

    /// The next messages.
    #[track_caller]
    pub fn recv_many(&self, count: usize) -> Vec<Vec<Vec<u8>>> {
        let told = self.call("recv", &[count.into()]);
        let messages = told.as_array().unwrap_or_else(|| panic!("no message: {told}"));
        messages.iter().map(|frames| frames.as_array().expect("frames").iter().map(bytes).collect()).collect()
    }

    /// The numbers with which the next messages of [`Self::flood`] begin, in their last frames.
    #[track_caller]
    pub fn recv_numbers(&self, count: usize) -> Vec<u64> {
        let told = self.call("recv_numbers", &[count.into()]);
        let numbers = told.as_array().unwrap_or_else(|| panic!("no messages: {told}"));
        numbers.iter().map(|number| number.as_u64().expect("a number")).collect()
    }

    /// Whether a message is there.
    #[track_caller]
    pub fn has_message(&self) -> bool {
        self.call("has_message", &[]) == true
    }

    /// Waits for an event of the connection, such as `HANDSHAKE_SUCCEEDED`; others before it are skipped.
    #[track_caller]
    pub fn await_event(&self, name: &str) {
        assert_eq!(self.call("await_event", &[name.into()]), name);
    }

    /// Closes it. Messages that were not written are lost unless LINGER says otherwise.
    #[track_caller]
    pub fn close(self) {
        self.call("close", &[]);
    }
}

/// Frames as texts whose characters are their bytes.
fn texts<F: AsRef<[u8]>>(frames: &[F]) -> Value {
    let text = |frame: &F| frame.as_ref().iter().map(|byte| char::from(*byte)).collect::<String>();
    frames.iter().map(text).collect()
}

fn bytes(frame: &Value) -> Vec<u8> {
    let text = frame.as_str().expect("a text").chars();
    text.map(|one| u8::try_from(u32::from(one)).expect("a byte")).collect()
}
