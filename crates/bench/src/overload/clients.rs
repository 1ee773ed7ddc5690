//! Clients that can be told how much to ask, and the books of how every request ended.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Notify;
use turno_proto::native::{Frame, Kind, Raw, RawOutgoing, encode};

use crate::link::{Link, Scratch, name_of, scratch};
use crate::spread::percentile;
use crate::system::System;
use crate::tasks::Failure;

const CLIENTS: usize = 10;
const BODY: [u8; 256] = [7; 256];
/// A client with so much unwritten asks nothing more until the socket takes it.
const UNWRITTEN_BYTES_MAX: usize = 256 * 1024;
/// How often an open loop asks.
const BEAT: Duration = Duration::from_millis(1);

/// How requests ended, since the last look.
#[derive(Default)]
pub(crate) struct RequestTally {
    pub(crate) replies: Cell<u64>,
    /// By the number of the code.
    pub(crate) refusals: RefCell<BTreeMap<u32, u64>>,
    /// Of everything that ended, however it did.
    pub(crate) micros: RefCell<Vec<u32>>,
    pub(crate) asked: Cell<u64>,
    pub(crate) unanswered: Cell<u64>,
    /// Not asked because the socket took nothing.
    pub(crate) held_back: Cell<u64>,
    failure: Failure,
}

/// The counts of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) seconds: f64,
    pub(crate) asked: u64,
    pub(crate) held_back: u64,
    pub(crate) replies: u64,
    pub(crate) refusals: BTreeMap<String, u64>,
    /// Of everything that ended.
    pub(crate) micros: Vec<u32>,
}

impl Interval {
    /// Sorts: not for while others are watched.
    pub(crate) fn p99_us(&self) -> f64 {
        let mut micros = self.micros.clone();
        micros.sort_unstable();
        percentile(&micros, 99).unwrap_or(0.0)
    }

    pub(crate) fn rate(&self) -> f64 {
        self.replies as f64 / self.seconds
    }
}

impl RequestTally {
    /// The counts so far.
    fn look(&self, seconds: f64) -> Interval {
        let refusals = self.refusals.borrow().iter().map(|(number, count)| (name_of(*number), *count)).collect();
        Interval {
            seconds,
            asked: self.asked.get(),
            held_back: self.held_back.get(),
            replies: self.replies.get(),
            refusals,
            micros: self.micros.borrow().clone(),
        }
    }

    /// Empties them.
    fn open(&self) {
        self.micros.take();
        self.refusals.take();
        self.asked.take();
        self.held_back.take();
        self.replies.take();
    }
}

/// One client.
struct Caller {
    books: Rc<RequestTally>,
    deadline_ms: u32,
    /// Bytes to be written.
    out: RefCell<Vec<u8>>,
    wake: Notify,
    asked: RefCell<Vec<Instant>>,
    free: RefCell<Vec<u32>>,
    unanswered: Cell<usize>,
    /// Asks again after every answer until so many are unanswered.
    keeps: Cell<usize>,
}

impl Caller {
    fn ask(&self) {
        if self.out.borrow().len() > UNWRITTEN_BYTES_MAX {
            self.books.held_back.set(self.books.held_back.get() + 1);
            return;
        }
        let mut asked = self.asked.borrow_mut();
        let seq = self.free.borrow_mut().pop().unwrap_or_else(|| {
            asked.push(Instant::now());
            u32::try_from(asked.len() - 1).unwrap_or(u32::MAX)
        });
        asked[seq as usize] = Instant::now();
        let raw = Raw { headers: false, bytes: &BODY };
        let message = RawOutgoing { deadline_ms: Some(self.deadline_ms), ..RawOutgoing::new(seq, 0, raw) };
        encode(&Frame::Request(message), &mut self.out.borrow_mut());
        self.unanswered.set(self.unanswered.get() + 1);
        self.books.unanswered.set(self.books.unanswered.get() + 1);
        self.books.asked.set(self.books.asked.get() + 1);
    }

    fn ended(&self, seq: u32) {
        let micros = self.asked.borrow()[seq as usize].elapsed().as_micros();
        self.books.micros.borrow_mut().push(u32::try_from(micros).unwrap_or(u32::MAX));
        self.free.borrow_mut().push(seq);
        self.unanswered.set(self.unanswered.get() - 1);
        self.books.unanswered.set(self.books.unanswered.get() - 1);
    }

    fn top_up(&self) {
        while self.unanswered.get() < self.keeps.get() {
            self.ask();
        }
        if !self.out.borrow().is_empty() {
            self.wake.notify_one();
        }
    }
}

/// Ten clients of one queue.
pub(crate) struct ClientGroup {
    pub(crate) books: Rc<RequestTally>,
    pub(crate) scratch: Scratch,
    callers: Vec<Rc<Caller>>,
}

impl ClientGroup {
    pub(crate) async fn gather(address: SocketAddr, deadline_ms: u32) -> Result<Self> {
        let (books, scratch) = (Rc::new(RequestTally::default()), scratch());
        let mut callers = Vec::new();
        for _ in 0..CLIENTS {
            let link = Link::client(System::Turno, address, &scratch, 0..1).await?;
            let caller = Rc::new(Caller {
                books: Rc::clone(&books),
                deadline_ms,
                out: RefCell::default(),
                wake: Notify::new(),
                asked: RefCell::default(),
                free: RefCell::default(),
                unanswered: Cell::new(0),
                keeps: Cell::new(0),
            });
            let (writer, stream) = (Rc::clone(&caller), link.stream());
            tokio::task::spawn_local(async move { writer.books.failure.keep(write(&writer, &stream).await) });
            let reader = Rc::clone(&caller);
            tokio::task::spawn_local(async move { reader.books.failure.keep(read(&reader, link).await) });
            callers.push(caller);
        }
        Ok(Self { books, scratch, callers })
    }

    /// Every client keeps so many unanswered; 0 ends it.
    pub(crate) fn keep_asking(&self, unanswered: usize) {
        for caller in &self.callers {
            caller.keeps.set(unanswered);
            caller.top_up();
        }
    }

    /// Waits, and says how requests ended meanwhile.
    pub(crate) async fn watch(&self, seconds: f64) -> Result<Interval> {
        let begun = self.begin();
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        self.look(begun)
    }

    /// Waits for something else, and then until `seconds` are over. Says how requests ended until the first, and until
    /// the second.
    pub(crate) async fn watch_during<T>(
        &self,
        other: impl Future<Output = Result<T>>,
        seconds: f64,
    ) -> Result<(Interval, Interval, T)> {
        let begun = self.begin();
        let value = other.await?;
        let during = self.look(begun)?;
        tokio::time::sleep_until((begun + Duration::from_secs_f64(seconds)).into()).await;
        Ok((during, self.look(begun)?, value))
    }

    /// Asks at a fixed rate whatever comes back, and says how requests ended meanwhile. `each_beat` is called often.
    pub(crate) async fn offer(&self, rate: f64, seconds: f64, mut each_beat: impl FnMut()) -> Result<Interval> {
        let begun = self.begin();
        let mut beats = tokio::time::interval(BEAT);
        let mut offered = 0_u64;
        while begun.elapsed().as_secs_f64() < seconds {
            beats.tick().await;
            let due = (begun.elapsed().as_secs_f64() * rate) as u64;
            for number in offered..due {
                self.callers[number as usize % CLIENTS].ask();
            }
            offered = due;
            for caller in &self.callers {
                caller.wake.notify_one();
            }
            each_beat();
        }
        self.look(begun)
    }

    /// Waits until nothing is unanswered; returns how many still are when patience ends.
    pub(crate) async fn empty(&self, patience: Duration) -> Result<u64> {
        let begun = Instant::now();
        while self.books.unanswered.get() > 0 && begun.elapsed() < patience {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.books.failure.check()?;
        Ok(self.books.unanswered.get())
    }

    fn begin(&self) -> Instant {
        self.books.open();
        Instant::now()
    }

    fn look(&self, begun: Instant) -> Result<Interval> {
        self.books.failure.check()?;
        Ok(self.books.look(begun.elapsed().as_secs_f64()))
    }
}

async fn write(caller: &Caller, stream: &tokio::net::TcpStream) -> Result<()> {
    loop {
        caller.wake.notified().await;
        while !caller.out.borrow().is_empty() {
            let tried = stream.try_write(&caller.out.borrow());
            match tried {
                Ok(count) => drop(caller.out.borrow_mut().drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => stream.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

async fn read(caller: &Caller, mut link: Link) -> Result<()> {
    loop {
        link.receive(|header, _, _| match Kind::from_number(header.kind) {
            Some(Kind::Reply) => {
                caller.ended(header.seq);
                caller.books.replies.set(caller.books.replies.get() + 1);
            }
            Some(Kind::Undelivered | Kind::Error) => {
                caller.ended(header.seq);
                *caller.books.refusals.borrow_mut().entry(header.word).or_default() += 1;
            }
            _ => {}
        })
        .await?;
        caller.top_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_grow_until_they_are_opened_anew() {
        let books = RequestTally::default();
        books.replies.set(50);
        books.refusals.borrow_mut().insert(40, 3);
        books.micros.borrow_mut().extend([1, 2, 3]);
        let stretch = books.look(2.0);
        assert_eq!((stretch.rate(), stretch.p99_us()), (25.0, 3.0));
        assert_eq!(stretch.refusals, BTreeMap::from([("timed_out".to_owned(), 3)]));
        books.replies.set(60);
        assert_eq!(books.look(2.0), Interval { replies: 60, ..stretch });
        books.open();
        assert_eq!(books.look(1.0), Interval { seconds: 1.0, ..Interval::default() });
    }
}
