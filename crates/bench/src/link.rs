//! A lean end of a connection for loads with thousands of them: no buffer of its own while nothing is half read.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;
use turno_proto::model::Code;
use turno_proto::native::{Frame, Header, Kind, encode, split};

use crate::native::{echo, greet, register};
use crate::system::System;

const SCRATCH_BYTES: usize = 256 * 1024;
/// Beyond so many bytes the set-up of a connection waits for its answers.
const SET_UP_BYTES: usize = 16 * 1024;

/// Read into by whichever connection's turn it is.
pub(crate) type Scratch = Rc<RefCell<Vec<u8>>>;

pub(crate) fn scratch() -> Scratch {
    Rc::new(RefCell::new(vec![0; SCRATCH_BYTES]))
}

/// One connection.
pub(crate) struct Link {
    stream: Rc<TcpStream>,
    scratch: Scratch,
    /// The beginning of a frame that is not all there.
    partial: Vec<u8>,
    pub(crate) out: Vec<u8>,
}

impl Link {
    /// A client that knows the queues by the handles 0, 1, ….
    pub(crate) async fn client(
        system: System,
        address: SocketAddr,
        scratch: &Scratch,
        queues: Range<usize>,
    ) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = Rc::new(stream);
        let mut link = Self { stream, scratch: Rc::clone(scratch), partial: Vec::new(), out: Vec::new() };
        if system == System::Turno {
            let due = greet(&mut link.out);
            let first = queues.start;
            let open = |handle: u32, out: &mut Vec<u8>| {
                let name = queue_name(first + handle as usize);
                encode(&Frame::Open { seq: 3, handle, name: name.as_bytes() }, out);
            };
            link.set_up(due, queues.len(), open).await?;
        }
        Ok(link)
    }

    /// A worker of those queues.
    pub(crate) async fn worker(
        system: System,
        address: SocketAddr,
        scratch: &Scratch,
        queues: Range<usize>,
        slots: u32,
    ) -> Result<Self> {
        // The relay knows no queues.
        let handles = if system == System::Turno { queues.len() } else { 0 };
        let mut link = Self::client(system, address, scratch, queues).await?;
        let due = register(slots, &mut link.out);
        link.set_up(due, handles, |handle, out| encode(&Frame::Consume { seq: 5, handle, exclusive: false }, out))
            .await?;
        Ok(link)
    }

    /// Says the same about every handle, and waits for the answers before they become too many.
    async fn set_up(&mut self, mut due: usize, handles: usize, say: impl Fn(u32, &mut Vec<u8>)) -> Result<()> {
        for handle in 0..u32::try_from(handles)? {
            say(handle, &mut self.out);
            due += 1;
            if self.out.len() > SET_UP_BYTES {
                self.answered(std::mem::take(&mut due)).await?;
            }
        }
        self.answered(due).await
    }

    /// A second hold on the socket, to write while another task reads.
    pub(crate) fn stream(&self) -> Rc<TcpStream> {
        Rc::clone(&self.stream)
    }

    pub(crate) async fn flush(&mut self) -> Result<()> {
        let mut written = 0;
        while written < self.out.len() {
            match self.stream.try_write(&self.out[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.stream.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
        self.out.clear();
        Ok(())
    }

    /// Writes what waits, and takes so many answers.
    pub(crate) async fn answered(&mut self, mut due: usize) -> Result<()> {
        self.flush().await?;
        while due > 0 {
            let (refused, early) = (Cell::new(None), Cell::new(0));
            let came = self.receive(|header, rest, out| match Kind::from_number(header.kind) {
                Some(Kind::Error) => refused.set(Some(header.word)),
                // Work that came before the last answer is done with the next flush.
                Some(Kind::Deliver) => {
                    early.set(early.get() + 1);
                    echo(&header, rest, out);
                }
                _ => {}
            });
            due = due.saturating_sub(came.await? - early.get());
            if let Some(number) = refused.get() {
                bail!("refused: {}", name_of(number));
            }
        }
        Ok(())
    }

    /// Waits until everything sent so far was taken in.
    pub(crate) async fn settled(&mut self) -> Result<()> {
        encode(&Frame::Ping { seq: 0 }, &mut self.out);
        self.answered(1).await
    }

    /// Reads once and hands over each whole frame, with the buffer for answers; returns how many there were.
    pub(crate) async fn receive(&mut self, mut each: impl FnMut(Header, &[u8], &mut Vec<u8>)) -> Result<usize> {
        loop {
            self.stream.readable().await?;
            let mut scratch = self.scratch.borrow_mut();
            let count = match self.stream.try_read(&mut scratch) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            let fresh = &scratch[..count];
            let mut frames = 0;
            if self.partial.is_empty() {
                let used = walk(fresh, &mut frames, |header, rest| each(header, rest, &mut self.out))?;
                self.partial.extend_from_slice(&fresh[used..]);
            } else {
                self.partial.extend_from_slice(fresh);
                let used = walk(&self.partial, &mut frames, |header, rest| each(header, rest, &mut self.out))?;
                self.partial.drain(..used);
            }
            if self.partial.is_empty() {
                self.partial = Vec::new();
            }
            return Ok(frames);
        }
    }
}

fn walk(bytes: &[u8], frames: &mut usize, mut each: impl FnMut(Header, &[u8])) -> Result<usize> {
    let mut used = 0;
    while let Some(piece) = split(&bytes[used..], usize::MAX).ok().context("a frame that makes no sense")? {
        each(piece.header, piece.rest);
        used += piece.used;
        *frames += 1;
    }
    Ok(used)
}

/// The name of a load's queue.
pub(crate) fn queue_name(number: usize) -> String {
    format!("bench.{number}")
}

/// The word for a code's number.
pub(crate) fn name_of(number: u32) -> String {
    Code::from_number(number).map_or_else(|| format!("code {number}"), |code| code.name().to_owned())
}
