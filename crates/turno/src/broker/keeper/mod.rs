//! The keeper of what outlives the broker: it writes down what the engine wants stored, and says when it is.

mod record;

use std::collections::BTreeMap;
use std::path::Path;

use turno_engine::{Input, Persist, Survivor};
use turno_proto::model::Code;
use turno_store::disk::FsDisk;
use turno_store::{CommitError, Committer, Done, Embedded, Item, RecordNo, Settings, Store};

use self::record::{MARKS, MESSAGES, Mark, NOTES};
use super::error::ServeError;

/// The key of the number that the ids of this store's messages share.
const RUN: &[u8] = b"run";

/// The way to the disk.
#[derive(Debug)]
pub(super) struct Keeper {
    committer: Committer,
    /// The group that is being written.
    group: Option<u64>,
    done: Vec<Done>,
}

/// What a store held when it was opened.
#[derive(Debug)]
pub(super) struct Estate {
    /// The number that the ids of its messages share.
    pub(super) run: u64,
    /// The highest serial any of its messages ever had.
    pub(super) last_serial: u64,
    /// Its messages, by serial.
    pub(super) survivors: Vec<Survivor>,
}

impl Keeper {
    /// Opens the store in that directory, which this process owns. `chance` is a number nobody can guess; `wake` is
    /// called when there is something to take.
    pub(super) fn open(
        directory: &Path,
        chance: u64,
        wake: impl Fn() + Send + 'static,
    ) -> Result<(Self, Estate), ServeError> {
        let failed = |source| ServeError::Store { directory: directory.to_owned(), source };
        let settings = Settings { salt: chance, ..Settings::default() };
        let disk = FsDisk::new(directory).map_err(|source| failed(source.into()))?;
        let (mut store, _) = Embedded::open(disk, settings).map_err(|source| failed(source.into()))?;
        let (estate, known) = Estate::read(&mut store, chance).map_err(failed)?;
        let committer = Committer::start(store, wake)
            .map_err(|source| ServeError::System { doing: "start the committer", source })?;
        let mut keeper = Self { committer, group: None, done: Vec::new() };
        if !known {
            keeper.committer.batch().set(NOTES, RUN, &estate.run.to_le_bytes());
            keeper.committer.end_group();
            keeper.committer.submit();
        }
        Ok((keeper, estate))
    }

    /// Writes one operation into the group that it belongs to.
    pub(super) fn keep(&mut self, group: u64, op: &Persist) {
        if self.group.is_some_and(|open| open != group) {
            self.committer.end_group();
        }
        self.group = Some(group);
        let batch = self.committer.batch();
        match op {
            Persist::Put { serial, record } => {
                batch.put_with(MESSAGES, RecordNo(*serial), |out| record::write(record, out));
            }
            Persist::Attempts { serial, attempts } => {
                set_mark(batch, *serial, &Mark { attempts: *attempts, failure: None });
            }
            Persist::Dead { serial, attempts, failure } => {
                set_mark(batch, *serial, &Mark { attempts: *attempts, failure: Some(failure.clone()) });
            }
            Persist::Remove { serial, marked } => {
                batch.delete(RecordNo(*serial));
                if *marked {
                    batch.unset(MARKS, &record::key(*serial));
                }
            }
        }
    }
}

impl Keeper {
    /// Hands over what was written since the last time. Once a tick.
    pub(super) fn submit(&mut self) {
        if self.group.take().is_some() {
            self.committer.end_group();
            self.committer.submit();
        }
    }
}
