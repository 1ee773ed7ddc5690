//! One connection through a proxy: each way has a thread that takes and one that passes on.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use turno_proto::native::split;

use super::state::{Cut, State, TICK, Trap, Way};

/// Bytes taken at a time, and how many such chunks of a way wait at most: then no more are taken.
const CHUNK: usize = 16 * 1024;
const WAITING: usize = 16;

/// A chunk on its way, and when it may go on; or the end.
enum Item {
    Bytes(Instant, Vec<u8>),
    /// Its sender says no more.
    End,
    /// Its sender is gone, or here the trap is.
    Cut(Cut),
}

/// The state that the four threads of a connection share.
struct Life<'a> {
    /// The cuts before it came.
    born: u64,
    state: &'a State,
    /// How it ended, if it ended before both sides had said all.
    cut: OnceLock<Cut>,
}

impl Life<'_> {
    /// Must it end?
    fn over(&self) -> bool {
        if self.cut.get().is_none()
            && let Some(how) = self.state.verdict(self.born)
        {
            self.end(how);
        }
        self.cut.get().is_some()
    }

    fn end(&self, how: Cut) {
        // The first of them decides how.
        let _ = self.cut.set(how);
    }
}

/// Until both sides have said all, or the connection is cut.
pub(super) fn carry(peer: &TcpStream, target: &TcpStream, born: u64, state: &State) {
    for stream in [peer, target] {
        let set = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(TICK)))
            .and_then(|()| stream.set_write_timeout(Some(TICK)));
        set.expect("our own socket");
    }
    let life = &Life { born, state, cut: OnceLock::new() };
    thread::scope(|scope| {
        for (way, from, to) in [(Way::There, peer, target), (Way::Back, target, peer)] {
            let (into, out) = sync_channel(WAITING);
            scope.spawn(move || take(life, way, from, into));
            scope.spawn(move || pass_on(life, way, to, &out));
        }
    });
    for stream in [peer, target] {
        match life.cut.get() {
            Some(Cut::Reset) => reset(stream),
            // Said before the end, because closing alone is a reset if something came that nobody read.
            Some(Cut::Fin) => drop(stream.shutdown(Shutdown::Both)),
            None => {}
        }
    }
}

/// Makes its end, which follows, a reset.
pub(super) fn reset(stream: &TcpStream) {
    set_socket_linger(stream, Some(Duration::ZERO)).expect("our own socket");
}

fn take(life: &Life<'_>, way: Way, mut from: &TcpStream, into: SyncSender<Item>) {
    let mut chunk = [0; CHUNK];
    let mut frames = life.state.trap.filter(|trap| trap.way == way).map(Frames::new);
    while !life.over() {
        let count = match from.read(&mut chunk) {
            Ok(count) => count,
            Err(error) if is_early(&error) => continue,
            // One side was reset, so the other is, after what was said before.
            Err(_) => return drop(into.send(Item::Cut(Cut::Reset))),
        };
        let delay = life.state.change(|switches| {
            switches.heard[way.index()] += count as u64;
            switches.delay[way.index()]
        });
        let (bytes, sprung) = match &mut frames {
            Some(frames) => frames.look(&chunk[..count], life.state),
            None => (chunk[..count].to_vec(), false),
        };
        let last = if sprung { Some(Item::Cut(Cut::Fin)) } else { (count == 0).then_some(Item::End) };
        let done = last.is_some();
        for item in [Some(Item::Bytes(Instant::now() + delay, bytes)), last].into_iter().flatten() {
            // Refused only by one that has ended, and then the connection has.
            if into.send(item).is_err() {
                return;
            }
        }
        if done {
            return;
        }
    }
}

fn pass_on(life: &Life<'_>, way: Way, to: &TcpStream, out: &Receiver<Item>) {
    while !life.over() {
        match out.recv_timeout(TICK) {
            Ok(Item::Bytes(due, bytes)) => {
                while !may_go(life.state, way, due) {
                    if life.over() {
                        return;
                    }
                    life.state.rest(TICK);
                }
                if write(life, way, to, &bytes).is_err() {
                    return life.end(Cut::Reset);
                }
            }
            Ok(Item::End) => {
                // The other side may have gone already.
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(Item::Cut(how)) => return life.end(how),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn may_go(state: &State, way: Way, due: Instant) -> bool {
    state.look(|switches| !switches.stalled[way.index()]) && Instant::now() >= due
}

/// All of it, in pieces as small as they shall be, unless the connection is cut.
fn write(life: &Life<'_>, way: Way, mut to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() && !life.over() {
        let piece = life.state.look(|switches| switches.piece[way.index()]).min(bytes.len());
        match to.write(&bytes[..piece]) {
            Ok(count) => {
                life.state.change(|switches| switches.passed[way.index()] += count as u64);
                bytes = &bytes[count..];
            }
            Err(error) if is_early(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Nothing came, or there was no room, within a tick.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The frames of one way, watched for the one with the trap.
struct Frames {
    trap: Trap,
    seen: usize,
    /// Of a frame that has not come as a whole; bounded by what a broker takes.
    begun: Vec<u8>,
}

impl Frames {
    const fn new(trap: Trap) -> Self {
        Self { trap, seen: 0, begun: Vec::new() }
    }

    /// The frames that are whole now, up to the trap; and whether it is there.
    fn look(&mut self, bytes: &[u8], state: &State) -> (Vec<u8>, bool) {
        self.begun.extend_from_slice(bytes);
        let mut whole = 0;
        while let Some(piece) = split(&self.begun[whole..], usize::MAX).expect("both sides speak our protocol") {
            self.seen += usize::from(piece.header.kind == self.trap.kind.number());
            let sprung = self.seen == self.trap.nth && state.change(|one| !std::mem::replace(&mut one.sprung, true));
            if sprung {
                self.begun.truncate(whole);
                return (std::mem::take(&mut self.begun), true);
            }
            whole += piece.used;
        }
        (self.begun.drain(..whole).collect(), false)
    }
}
