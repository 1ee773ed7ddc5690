//! ZeroMQ: the codec on a blocking socket.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use turno_proto::model::Mono;
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy};
use turno_proto::zmtp::{Peer, ZmtpFault, ZmtpSession, ZmtpSettings, ZmtpStep};

use crate::wait;

/// A ZMTP connection of the test.
pub struct Wire {
    stream: TcpStream,
    session: ZmtpSession,
    began: Instant,
    /// Bytes that came and were not looked at.
    rest: Vec<u8>,
    out: Vec<u8>,
    /// Steps that came while heartbeats were awaited.
    told: VecDeque<ZmtpStep<'static>>,
    /// Whether clients may connect that show who they are.
    accepts: bool,
    /// Commands that were dealt with in the session since the handshake: PING and PONG.
    beats: usize,
    /// The peer has closed the connection.
    is_closed: bool,
}

impl Wire {
    /// Waits for a peer that dials.
    pub fn accept(listener: &TcpListener, settings: ZmtpSettings) -> Self {
        listener.set_nonblocking(true).expect("our own socket");
        let (stream, _) = wait::find(wait::PATIENCE, || listener.accept().ok()).expect("somebody dials");
        stream.set_nonblocking(false).expect("our own socket");
        Self::new(stream, settings)
    }

    /// Dials a peer, as soon as it listens.
    pub fn dial(address: SocketAddr, settings: ZmtpSettings) -> Self {
        let stream = wait::find(wait::PATIENCE, || TcpStream::connect(address).ok()).expect("somebody listens");
        Self::new(stream, settings)
    }

    fn new(stream: TcpStream, settings: ZmtpSettings) -> Self {
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("our own socket");
        let mut out = Vec::new();
        // The secrets of a test.
        let entropy = Entropy::new([7; ENTROPY_LEN]);
        let session = ZmtpSession::begin(Mono::ZERO, Arc::new(settings), entropy, &mut out);
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
    pub fn hear(&mut self) -> Result<ZmtpStep<'static>, ZmtpFault> {
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
    pub fn ends(mut self) -> Option<ZmtpFault> {
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

    fn turn(&mut self) -> Result<(), ZmtpFault> {
        let now = self.now();
        let timely = self.session.handle_timeout(now, &mut self.out);
        self.flush();
        timely?;
        let stepped = self.session.step(now, &self.rest, &mut self.out);
        let stepped = stepped.map(|(step, used)| (step.into_owned(), used));
        self.flush();
        let (step, used) = stepped?;
        self.rest.drain(..used);
        match self.judge(step)? {
            ZmtpStep::NeedMore => self.read(),
            ZmtpStep::Done => self.beats += usize::from(!self.session.greeting()),
            step => self.told.push_back(step),
        }
        Ok(())
    }

    fn judge(&mut self, step: ZmtpStep<'static>) -> Result<ZmtpStep<'static>, ZmtpFault> {
        let step = match step {
            ZmtpStep::Asks(_) if self.accepts => self.session.accept(self.now(), &mut self.out),
            ZmtpStep::Asks(_) => {
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
            Ok(ZmtpStep::Handshaked(peer)) => peer,
            other => panic!("no handshake: {other:?}"),
        }
    }

    /// The parts of the next message.
    pub fn message(&mut self) -> Vec<Vec<u8>> {
        match self.hear() {
            Ok(ZmtpStep::Message(message)) => message.parts().map(<[u8]>::to_vec).collect(),
            other => panic!("no message: {other:?}"),
        }
    }

    /// Sends a message.
    pub fn send(&mut self, parts: &[Vec<u8>]) {
        assert!(self.session.send(parts.iter().map(Vec::as_slice), &mut self.out), "the handshake is done");
        self.flush();
    }

    /// Sends these bytes, whatever they are.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
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
