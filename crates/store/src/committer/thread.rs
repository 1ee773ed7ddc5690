//! The committer's thread: it commits the collected groups and reports the result.

use std::sync::Arc;
use std::time::Duration;

use super::queue::{CommitRequest, Queue};
use super::{Done, Loaded};
use crate::batch::Batch;
use crate::error::{CommitError, ReadError, Retry};
use crate::limits::{ATTEMPT_MS, ATTEMPTS_MAX};
use crate::store::{CommitNo, Epoch, Store};

pub(super) struct Worker<S> {
    store: S,
    epoch: Epoch,
    last: CommitNo,
    queue: Arc<Queue>,
    wait: Wait,
    wake: Box<dyn Fn() + Send>,
}

/// How time passes between two attempts while the store is away.
pub(super) enum Wait {
    /// The thread sleeps.
    Asleep,
    /// Nobody sleeps: it is only counted how many milliseconds that would have been.
    Counted(u64),
}

/// The result of one step.
pub(super) enum Work {
    Commit,
    Housekeeping,
    Nothing,
}

/// Reports the end even if the store panics: a dispatcher must not wait for ever.
struct LastReport<'a> {
    queue: &'a Queue,
    wake: &'a dyn Fn(),
    why: Option<CommitError>,
}

impl Drop for LastReport<'_> {
    fn drop(&mut self) {
        self.queue.die(self.why.take());
        (self.wake)();
    }
}

/// The result of one attempt.
enum Attempt {
    Done,
    /// Its outcome was unknown, and it is there. A later commit must succeed before anybody is told.
    Found,
    /// It is not there: again, at once or after a while.
    Again {
        pause: bool,
    },
}

impl<S: Store> Worker<S> {
    pub(super) fn new(store: S, queue: Arc<Queue>, wait: Wait, wake: Box<dyn Fn() + Send>) -> Self {
        let epoch = store.epoch();
        Self { store, epoch, last: CommitNo(0), queue, wait, wake }
    }

    pub(super) fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let wake = std::mem::replace(&mut self.wake, Box::new(|| {}));
        let panicked = CommitError::Unavailable { retry: Retry::Never, why: "the store panicked".to_owned() };
        let mut last_report = LastReport { queue: &queue, wake: &*wake, why: Some(panicked) };
        last_report.why = self.work(&*wake).err();
    }

    fn work(&mut self, wake: &dyn Fn()) -> Result<(), CommitError> {
        self.last = self.store.last_commit()?;
        while let Some(gathered) = self.next()? {
            self.carry_out(gathered)?;
            wake();
        }
        Ok(())
    }

    /// One turn of what the thread does for ever.
    pub(super) fn turn(&mut self) -> Result<Work, CommitError> {
        if self.last == CommitNo(0) {
            self.last = self.store.last_commit()?;
        }
        if let Some(gathered) = self.queue.next() {
            self.carry_out(gathered)?;
            return Ok(Work::Commit);
        }
        Ok(if self.tidy()? { Work::Housekeeping } else { Work::Nothing })
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The milliseconds that were only counted since the last call.
    pub(super) fn take_waited_ms(&mut self) -> u64 {
        match &mut self.wait {
            Wait::Asleep => 0,
            Wait::Counted(ms) => std::mem::take(ms),
        }
    }

    fn carry_out(&mut self, mut gathered: CommitRequest) -> Result<(), CommitError> {
        let mut done = Vec::new();
        self.settle(&mut gathered, &mut done)?;
        self.read(&gathered, &mut done);
        self.queue.answer(&mut done, gathered);
        Ok(())
    }

    /// The next batch. While there is none, the store's housekeeping goes on.
    fn next(&mut self) -> Result<Option<CommitRequest>, CommitError> {
        loop {
            if let Some(next) = self.queue.next() {
                return Ok(Some(next));
            }
            if !self.tidy()? {
                return Ok(self.queue.wait());
            }
        }
    }

    /// A piece of housekeeping. Whether there is more.
    fn tidy(&mut self) -> Result<bool, CommitError> {
        match self.store.compact() {
            Err(CommitError::Unavailable { retry: Retry::Later, .. }) => Ok(false),
            tidied => tidied,
        }
    }

    fn settle(&mut self, gathered: &mut CommitRequest, done: &mut Vec<Done>) -> Result<(), CommitError> {
        let refused = gathered.refused.drain(..).map(|(ticket, why)| Done::Refused { ticket, why });
        done.extend(refused);
        if !gathered.batch.is_empty() {
            match self.commit(&mut gathered.batch) {
                Ok(()) => {}
                Err(CommitError::Full) => self.commit_without_puts(gathered, done)?,
                Err(error) => return Err(error),
            }
        }
        done.extend(gathered.groups.last().map(|group| Done::Durable(group.ticket)));
        Ok(())
    }

    /// On a full store only the groups that put something are refused: the others make room.
    fn commit_without_puts(&mut self, gathered: &CommitRequest, done: &mut Vec<Done>) -> Result<(), CommitError> {
        let mut without = Batch::new();
        let (mut ops, mut at) = (gathered.batch.ops(), 0);
        for group in &gathered.groups {
            while at < group.end
                && let Some((op, len)) = ops.next_with_len()
            {
                at += len;
                if !group.has_puts {
                    without.push(op);
                }
            }
        }
        let outcome = if without.is_empty() { Ok(()) } else { self.commit(&mut without) };
        let takes_nothing = match outcome {
            Ok(()) => false,
            Err(CommitError::Full) => true,
            Err(error) => return Err(error),
        };
        let refused = gathered.groups.iter().filter(|group| !group.is_refused && (group.has_puts || takes_nothing));
        done.extend(refused.map(|group| Done::Refused { ticket: group.ticket, why: CommitError::Full }));
        Ok(())
    }

    /// Commits a batch once, whatever it takes to find out that it is there.
    fn commit(&mut self, batch: &mut Batch) -> Result<(), CommitError> {
        let mut proof = Batch::new();
        let mut is_found = false;
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(if is_found { &mut proof } else { batch })? {
                Attempt::Done => return Ok(()),
                Attempt::Found => is_found = true,
                Attempt::Again { pause: false } => {}
                Attempt::Again { pause: true } => {
                    if !self.pause() {
                        break;
                    }
                }
            }
        }
        let why = "the store was unavailable for too long".to_owned();
        Err(CommitError::Unavailable { retry: Retry::Never, why })
    }

    /// Lets time pass. Whether there is any use in going on.
    fn pause(&mut self) -> bool {
        match &mut self.wait {
            Wait::Asleep => self.queue.pause(Duration::from_millis(ATTEMPT_MS)),
            Wait::Counted(ms) => {
                *ms += ATTEMPT_MS;
                true
            }
        }
    }

    fn attempt(&mut self, batch: &mut Batch) -> Result<Attempt, CommitError> {
        let no = self.last.next();
        let away = |error| match error {
            CommitError::Unavailable { retry: Retry::Later, .. } => Ok(Attempt::Again { pause: true }),
            error => Err(error),
        };
        match self.store.commit(self.epoch, no, batch) {
            Ok(()) => {
                self.last = no;
                Ok(Attempt::Done)
            }
            Err(CommitError::Unknown(_)) => match self.store.last_commit() {
                Ok(last) if last == no => {
                    self.last = no;
                    Ok(Attempt::Found)
                }
                Ok(last) if last == self.last => Ok(Attempt::Again { pause: false }),
                Ok(last) => Err(CommitError::OutOfTurn { last }),
                Err(error) => away(error),
            },
            // An earlier attempt was done after all, and the store could not say so then.
            Err(CommitError::OutOfTurn { last }) if last == no => {
                self.last = no;
                Ok(Attempt::Found)
            }
            Err(error) => away(error),
        }
    }

    fn read(&mut self, gathered: &CommitRequest, done: &mut Vec<Done>) {
        let from = done.len();
        let read = self.store.read(&gathered.loads, &mut |record, found| {
            let found = found.map(|(space, value)| (space, value.to_vec()));
            done.push(Done::Loaded(Loaded { record, found: Ok(found) }));
        });
        if let Err(why) = read {
            let rest = gathered.loads.iter().skip(done.len() - from);
            let failed = |record: &_| Done::Loaded(Loaded { record: *record, found: Err::<_, ReadError>(why.clone()) });
            done.extend(rest.map(failed).collect::<Vec<_>>());
        }
    }
}
