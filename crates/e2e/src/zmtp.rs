//! ZeroMQ: the codec on a blocking socket, and programs of the real library to talk to.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use turno_proto::model::Mono;
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy};
use turno_proto::zmtp::{Fault, Peer, Session, Settings, Step};

use crate::run::Run;
use crate::wait;

/// A ZMTP connection of the test.
pub struct Wire {
    stream: TcpStream,
    session: Session,
    began: Instant,
    /// Bytes that came and were not looked at.
    rest: Vec<u8>,
    out: Vec<u8>,
    /// What came while heartbeats were waited for.
    told: VecDeque<Step>,
    /// Whether clients may connect that show who they are.
    accepts: bool,
    /// Commands that were dealt with in the session since the handshake: PING and PONG.
    beats: usize,
    /// The peer has closed the connection.
    is_closed: bool,
}

impl Wire {
    /// Waits for a peer that dials.
    pub fn accept(listener: &TcpListener, settings: Settings) -> Self {
        listener.set_nonblocking(true).expect("our own socket");
        let (stream, _) = wait::find(wait::PATIENCE, || listener.accept().ok()).expect("somebody dials");
        stream.set_nonblocking(false).expect("our own socket");
        Self::new(stream, settings)
    }

    /// Dials a peer, as soon as it listens.
    pub fn dial(address: SocketAddr, settings: Settings) -> Self {
        let stream = wait::find(wait::PATIENCE, || TcpStream::connect(address).ok()).expect("somebody listens");
        Self::new(stream, settings)
    }

    fn new(stream: TcpStream, settings: Settings) -> Self {
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("our own socket");
        let mut out = Vec::new();
        // The secrets of a test.
        let entropy = Entropy::new([7; ENTROPY_LEN]);
        let session = Session::begin(Mono::ZERO, Arc::new(settings), entropy, &mut out);
        let (rest, told) = (Vec::new(), VecDeque::new());
        Self { stream, session, began: Instant::now(), rest, out, told, accepts: true, beats: 0, is_closed: false }
    }

    /// Clients that show who they are are refused.
    pub const fn refuse(mut self) -> Self {
        self.accepts = false;
        self
    }

    fn now(&self) -> Mono {
        Mono::ZERO + self.began.elapsed()
    }

    fn flush(&mut self) {
        // A peer that was refused may be gone.
        if !self.out.is_empty() {
            let _ = self.stream.write_all(&std::mem::take(&mut self.out));
            self.resume();
        }
    }

    /// The next thing that the session tells.
    pub fn hear(&mut self) -> Result<Step, Fault> {
        self.resume();
        let end = Instant::now() + wait::PATIENCE;
        while Instant::now() < end {
            if let Some(step) = self.told.pop_front() {
                return Ok(step);
            }
            assert!(!self.is_closed, "the peer closed the connection");
            self.turn()?;
        }
        panic!("waited in vain for the peer");
    }

    /// Waits for the end of the connection: by the peer, or by a fault of the peer.
    pub fn ends(mut self) -> Option<Fault> {
        let end = Instant::now() + wait::PATIENCE;
        while !self.is_closed {
            assert!(Instant::now() < end, "waited in vain for the end");
            if let Err(fault) = self.turn() {
                return Some(fault);
            }
        }
        None
    }

    /// Waits until so many PINGs and PONGs came since the handshake.
    pub fn beats(&mut self, count: usize) {
        self.resume();
        let end = Instant::now() + wait::PATIENCE;
        while self.beats < count {
            assert!(Instant::now() < end, "waited in vain for heartbeats");
            self.turn().expect("the peer is heard");
        }
    }

    /// Nothing was read since the last call, so that the peer was not silent.
    fn resume(&mut self) {
        self.session.heard(self.now());
    }

    fn turn(&mut self) -> Result<(), Fault> {
        let now = self.now();
        let timely = self.session.handle_timeout(now, &mut self.out);
        self.flush();
        timely?;
        let stepped = self.session.step(now, &self.rest, &mut self.out);
        self.flush();
        let (step, used) = stepped?;
        self.rest.drain(..used);
        match self.judge(step)? {
            Step::NeedMore => self.read(),
            Step::Done => self.beats += usize::from(!self.session.greeting()),
            step => self.told.push_back(step),
        }
        Ok(())
    }

    fn judge(&mut self, step: Step) -> Result<Step, Fault> {
        let step = match step {
            Step::Asks(_) if self.accepts => self.session.accept(self.now(), &mut self.out),
            Step::Asks(_) => {
                let fault = self.session.refuse(&mut self.out);
                self.flush();
                return Err(fault);
            }
            step => step,
        };
        self.flush();
        Ok(step)
    }

    fn read(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.rest.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("reading: {error}"),
        }
    }

    /// The peer, once the handshake is done.
    pub fn handshake(&mut self) -> Peer {
        match self.hear() {
            Ok(Step::Handshaked(peer)) => peer,
            other => panic!("no handshake: {other:?}"),
        }
    }

    /// The parts of the next message.
    pub fn message(&mut self) -> Vec<Vec<u8>> {
        match self.hear() {
            Ok(Step::Message(message)) => message.parts().map(<[u8]>::to_vec).collect(),
            other => panic!("no message: {other:?}"),
        }
    }

    /// Sends a message.
    pub fn send(&mut self, parts: &[Vec<u8>]) {
        assert!(self.session.send(parts.iter().map(Vec::as_slice), &mut self.out), "the handshake is done");
        self.flush();
    }

    /// Says what it wants to hear of.
    pub fn subscribe(&mut self, prefix: &[u8]) {
        assert!(self.session.subscribe(prefix, &mut self.out), "the handshake is done");
        self.flush();
    }

    /// Takes that back.
    pub fn cancel(&mut self, prefix: &[u8]) {
        assert!(self.session.cancel(prefix, &mut self.out), "the handshake is done");
        self.flush();
    }
}

/// A program with a socket of libzmq, `python/peer.py`.
pub struct Pyzmq {
    ends: JoinHandle<Run>,
}

impl Pyzmq {
    /// Starts it. `given` says which socket it has.
    pub fn start(what: &str, given: &Value) -> Self {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let python = root.join("target/pyzmq/bin/python");
        assert!(
            python.exists(),
            "pyzmq is missing: `cargo xtask test` installs it, or type \
             `python3 -m venv target/pyzmq && target/pyzmq/bin/pip install pyzmq`"
        );
        let mut command = Command::new(python);
        command.arg(root.join("crates/e2e/python/peer.py")).arg(what).arg(given.to_string());
        Self { ends: thread::spawn(move || Run::finish(command, &[], 2 * wait::PATIENCE)) }
    }

    /// Waits for its end; it must have been content with all it saw. Returns what it printed before that.
    #[track_caller]
    pub fn done(self) -> String {
        let text = self.ends.join().expect("the program ends").expect(0).text();
        text.strip_suffix("done\n").expect("the program says that it is done").to_owned()
    }
}
