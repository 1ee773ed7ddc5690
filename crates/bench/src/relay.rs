//! The limit: client → relay → worker → relay → client, frames parsed, writes batched, and not a thought more.
//!
//! It has the shape of the broker's own shell (one thread, one task per connection, one shared read buffer, one write
//! per connection per tick), so that what Turno takes on top is what its rules cost. A connection that begins with
//! REGISTER is a worker; clients' frames go to workers in turn, and the answer finds its way back by `word`.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use anyhow::Result;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpListener;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use turno_proto::native::{HEADER_LEN, Header, Kind};

use crate::tasks::block_on;

const READ_BYTES: usize = 64 * 1024;
const FRAME_MAX: usize = 16 * 1024 * 1024;

struct RelayConnection {
    write_end: Rc<OwnedWriteHalf>,
    partial: Vec<u8>,
    out: Vec<u8>,
    dirty: bool,
}

#[derive(Default)]
struct State {
    lines: Vec<Option<RelayConnection>>,
    workers: Vec<usize>,
    turn: usize,
    dirty: Vec<usize>,
    buffer: Vec<u8>,
}

#[derive(Default)]
struct Relay {
    state: RefCell<State>,
    flush: Notify,
}

/// Runs until it is killed; prints the port it listens on.
pub(crate) fn run() -> Result<()> {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let relay = Rc::new(Relay::default());
        relay.state.borrow_mut().buffer = vec![0; READ_BYTES];
        tokio::task::spawn_local(flush_for_ever(Rc::clone(&relay)));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (read_end, write_end) = stream.into_split();
            let mut state = relay.state.borrow_mut();
            let index = state.lines.len();
            let write_end = Rc::new(write_end);
            state.lines.push(Some(RelayConnection { write_end, partial: Vec::new(), out: Vec::new(), dirty: false }));
            drop(state);
            tokio::task::spawn_local(read_for_ever(Rc::clone(&relay), index, read_end));
        }
    })
}

async fn read_for_ever(relay: Rc<Relay>, index: usize, mut end: OwnedReadHalf) {
    loop {
        let count = poll_fn(|context| {
            let mut state = relay.state.borrow_mut();
            let mut buffer = std::mem::take(&mut state.buffer);
            let mut into = ReadBuf::new(&mut buffer);
            let polled = Pin::new(&mut end).poll_read(context, &mut into);
            let count = into.filled().len();
            if let Poll::Ready(Ok(())) = polled {
                state.take(index, &buffer[..count]);
            }
            state.buffer = buffer;
            polled.map(|result| result.map(|()| count))
        })
        .await;
        match count {
            Ok(0) | Err(_) => break,
            Ok(READ_BYTES) => tokio::task::yield_now().await,
            Ok(_) => {}
        }
        if !relay.state.borrow().dirty.is_empty() {
            relay.flush.notify_one();
        }
    }
    let mut state = relay.state.borrow_mut();
    state.lines[index] = None;
    state.workers.retain(|worker| *worker != index);
}

async fn flush_for_ever(relay: Rc<Relay>) {
    loop {
        relay.flush.notified().await;
        let dirty = std::mem::take(&mut relay.state.borrow_mut().dirty);
        for index in dirty {
            let (write_end, out) = {
                let mut state = relay.state.borrow_mut();
                let Some(line) = &mut state.lines[index] else { continue };
                line.dirty = false;
                (Rc::clone(&line.write_end), std::mem::take(&mut line.out))
            };
            let mut written = 0;
            while written < out.len() {
                match write_end.try_write(&out[written..]) {
                    Ok(count) => written += count,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        if write_end.writable().await.is_err() {
                            break;
                        }
                    }
                    Err(_) => break,
                }
            }
            // The buffer goes back, unless something new was put beside it meanwhile.
            if let Some(line) = &mut relay.state.borrow_mut().lines[index]
                && line.out.is_empty()
            {
                line.out = out;
                line.out.clear();
            }
        }
    }
}

impl State {
    fn take(&mut self, index: usize, bytes: &[u8]) {
        let Some(line) = &mut self.lines[index] else { return };
        if line.partial.is_empty() {
            let used = self.forward(index, bytes);
            if let Some(line) = &mut self.lines[index] {
                line.partial.extend_from_slice(&bytes[used..]);
            }
        } else {
            line.partial.extend_from_slice(bytes);
            let mut partial = std::mem::take(&mut line.partial);
            let used = self.forward(index, &partial);
            partial.drain(..used);
            if let Some(line) = &mut self.lines[index] {
                line.partial = partial;
            }
        }
    }

    fn forward(&mut self, index: usize, bytes: &[u8]) -> usize {
        let mut used = 0;
        while let Some((head, rest)) = bytes[used..].split_first_chunk::<HEADER_LEN>() {
            let Some(header) = Header::from_bytes(head) else { return bytes.len() };
            let length = header.length as usize;
            if length > FRAME_MAX || rest.len() < length {
                break;
            }
            let (word, to) = match Kind::from_number(header.kind) {
                // It goes back to the worker, which then knows that requests will find it.
                Some(Kind::Register) => {
                    self.workers.push(index);
                    (header.word as usize, index)
                }
                Some(Kind::Reply) => (0, header.word as usize),
                _ => {
                    self.turn = (self.turn + 1) % self.workers.len().max(1);
                    (index, self.workers.get(self.turn).copied().unwrap_or(index))
                }
            };
            if let Some(Some(line)) = self.lines.get_mut(to) {
                let word = u32::try_from(word).unwrap_or(0);
                line.out.extend_from_slice(&Header { word, ..header }.to_bytes());
                line.out.extend_from_slice(&rest[..length]);
                if !line.dirty {
                    line.dirty = true;
                    self.dirty.push(to);
                }
            }
            used += HEADER_LEN + length;
        }
        used
    }
}
