//! Group commit on a thread of its own. There is no timer: the next batch is what gathered during the last sync.
//!
//! The dispatcher encodes operations into [`Committer::batch`] without a lock, says after each group that must be whole
//! where it ends ([`end_group`](Committer::end_group)), and hands all of it over at the end of its tick
//! ([`submit`](Committer::submit)): one lock, a swap of buffers, and a wake-up only if the thread sleeps. Answers come
//! back in the order of the tickets, as a watermark; `wake` is called when there are new ones.
//!
//! The thread also reads records back, so that the store has one owner and needs no lock.

mod queue;
mod stepper;
mod thread;

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crate::batch::{Batch, Mark};
use crate::error::{CommitError, ReadError};
use crate::limits::GATHER_BYTES;
use crate::store::{RecordNo, Space, Store};

use queue::{CommitRequest, Group, Queue};
use thread::{Wait, Worker};

pub use stepper::{Stepper, Turn};

/// The number of a group: 1, 2, 3 …
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A record that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The number of the record.
    pub record: RecordNo,
    /// Its mark and its bytes; none if there is no such record (any more).
    pub found: Result<Option<(Space, Vec<u8>)>, ReadError>,
}

/// A report of the committer, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Done {
    /// A group was refused: `Full` or `TooLarge`. Nothing of it is there. Told before the watermark passes it.
    Refused {
        /// Which one.
        ticket: Ticket,
        /// The reason.
        why: CommitError,
    },
    /// Every group up to and with this one is durable, but for those refused.
    Durable(Ticket),
    /// A record that was asked for.
    Loaded(Loaded),
    /// Nothing after the last watermark is confirmed, and nothing ever will be. Told once; stop.
    Fatal(CommitError),
}

/// The dispatcher's end of the group commit.
#[derive(Debug)]
pub struct Committer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    gathered: CommitRequest,
    /// Where the group that is being written began.
    mark: Mark,
    last: Ticket,
    batch_bytes_max: usize,
    is_behind: bool,
}

impl Committer {
    /// Starts the thread. It owns the store until the committer is closed or dropped.
    pub fn start<S: Store + 'static>(store: S, wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let batch_bytes_max = store.capacity().batch_bytes_max;
        let queue = Arc::new(Queue::default());
        let worker = Worker::new(store, Arc::clone(&queue), Wait::Asleep, Box::new(wake));
        let thread = Builder::new().name("committer".to_owned()).spawn(move || worker.run())?;
        Ok(Self::new(queue, Some(thread), batch_bytes_max))
    }

    /// The same without a thread: nothing is committed until the [`Stepper`] does it. For simulations, in which
    /// time is not real.
    pub fn by_hand<S: Store>(store: S) -> (Self, Stepper<S>) {
        let batch_bytes_max = store.capacity().batch_bytes_max;
        let queue = Arc::new(Queue::default());
        let worker = Worker::new(store, Arc::clone(&queue), Wait::Counted(0), Box::new(|| {}));
        (Self::new(queue, None, batch_bytes_max), Stepper::new(worker))
    }

    fn new(queue: Arc<Queue>, thread: Option<JoinHandle<()>>, batch_bytes_max: usize) -> Self {
        Self {
            queue,
            thread,
            gathered: CommitRequest::default(),
            mark: Mark::default(),
            last: Ticket(0),
            batch_bytes_max,
            is_behind: false,
        }
    }

    /// Where the next operations go.
    pub fn batch(&mut self) -> &mut Batch {
        &mut self.gathered.batch
    }

    /// Says that what was appended since the last group belongs together: all of it or nothing. A group of its own is
    /// what may be refused on its own.
    pub fn end_group(&mut self) -> Ticket {
        self.last.0 += 1;
        let has_puts = self.gathered.batch.has_puts_since(self.mark);
        let mut is_refused = false;
        if self.gathered.batch.is_beyond(self.batch_bytes_max) {
            let group = self.gathered.batch.split_off(self.mark);
            if group.is_beyond(self.batch_bytes_max) {
                self.gathered.refused.push((self.last, CommitError::TooLarge));
                is_refused = true;
            } else {
                self.submit_ended();
                self.gathered.batch = group;
            }
        }
        self.gathered.groups.push(Group { ticket: self.last, end: self.gathered.batch.len(), has_puts, is_refused });
        self.mark = self.gathered.batch.mark();
        if self.gathered.batch.len() >= GATHER_BYTES {
            self.submit_ended();
        }
        self.last
    }

    /// Asks for a record. It is read when everything submitted so far is committed.
    pub fn load(&mut self, record: RecordNo) {
        self.gathered.loads.push(record);
    }

    /// Hands over what was gathered.
    pub fn submit(&mut self) {
        if self.gathered.batch.len() != self.mark.len {
            self.end_group();
        }
        self.submit_ended();
    }

    fn submit_ended(&mut self) {
        if !self.gathered.is_empty() {
            let gather_max = GATHER_BYTES.min(self.batch_bytes_max);
            self.is_behind = self.queue.submit(&mut self.gathered, gather_max);
        }
        self.mark = self.gathered.batch.mark();
    }

    /// Moves what there is to say to the end of `into`.
    pub fn take_done(&mut self, into: &mut Vec<Done>) {
        self.is_behind = self.queue.take_done(into);
    }

    /// Whether more waits than should. As of the last [`submit`](Self::submit) or [`take_done`](Self::take_done).
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Commits what was gathered, ends the thread, and gives what it said last.
    #[must_use]
    pub fn close(mut self) -> Vec<Done> {
        let mut done = Vec::new();
        self.end();
        self.take_done(&mut done);
        done
    }

    fn end(&mut self) {
        self.submit();
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so as a fatal error.
            drop(thread.join());
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.end();
    }
}
