//! `cargo xtask bench log`: the store beside a plain loop that writes the same bytes and syncs them, and does nothing else.
//!
//! All of them take turns, some syncs each and in random order, so that a noisy moment hits all alike; a figure is the
//! median of the turns of a round, beside that of the plain loop. The plain loop's file is written ahead. The store is
//! measured on files that it has used before, as a broker does that runs for a while, and on new ones, which it has to
//! write ahead now and then: what that costs is not in a median of small batches.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use fastrand::Rng;
use turno_store::disk::FsDisk;
use turno_store::{Batch, CommitNo, Committer, Done, Embedded, RecordNo, Settings, Space, Store as _, Ticket};

use crate::options::count;
use crate::spread::{Spread, clock_seed, median};

const ROUNDS: usize = 7;
/// How long the turns of a round take together, at least.
const ROUND: Duration = Duration::from_millis(2_500);
/// Syncs of one turn.
const TURN: u32 = 8;
/// Wake-ups that were not taken yet: two batches are under way at most, and one comes at the end.
const WAKES_MAX: usize = 3;
/// Bytes a message takes in the log beside its head: a body of 256, and what the broker notes with it.
const VALUE: [u8; 275] = [7; 275];
/// Messages that are stored and not yet acked.
const PENDING: u64 = 2_000;
/// Messages a sync.
const SIZES: [u64; 4] = [1, 16, 128, 1_024];
/// As long as a segment of the store.
const PLAIN_BYTES: u64 = 64 << 20;
/// Enough for every file of the store to be used once.
const AGE_BYTES: u64 = 5 * PLAIN_BYTES;
const AGE_MESSAGES: u64 = 8_192;

#[derive(Args, Debug)]
pub(crate) struct LogOptions {
    /// Rounds of each
    #[arg(long, default_value_t = ROUNDS, value_parser = count)]
    rounds: usize,
    /// Of the order; without it the clock's
    #[arg(long)]
    seed: Option<u64>,
    /// Somewhere on the disk to measure
    #[arg(long, default_value = "target")]
    folder: PathBuf,
}

/// The writer that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LogWriter {
    /// `pwrite` and `fdatasync`.
    Plain,
    /// The store on files that it has used before.
    Store,
    /// The same by the group committer's thread.
    Committer,
    /// The store on new files.
    NewFiles,
}

impl LogWriter {
    const ALL: [Self; 4] = [Self::Plain, Self::Store, Self::Committer, Self::NewFiles];
}

impl fmt::Display for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "plain loop",
            Self::Store => "store",
            Self::Committer => "committer",
            Self::NewFiles => "new files",
        })
    }
}

pub(crate) fn run(options: &LogOptions) -> Result<()> {
    let seed = options.seed.map_or_else(clock_seed, Ok)?;
    let folder = Folder::new(&options.folder)?;
    folder.age()?;
    println!("a message: put of {} bytes and a delete; order by seed {seed}", VALUE.len());
    let mut dice = Rng::with_seed(seed);
    for size in SIZES {
        let mut ratios: BTreeMap<LogWriter, Vec<f64>> = BTreeMap::new();
        let mut syncs = Vec::new();
        for _ in 0..options.rounds {
            let mut costs = folder.round(size, &mut dice)?;
            let plain = costs.remove(&LogWriter::Plain).context("it takes its turn")?;
            syncs.push(1.0 / plain);
            costs.into_iter().for_each(|(way, cost)| ratios.entry(way).or_default().push(plain / cost));
        }
        println!(
            "\n{size} messages a sync; {}: {} syncs/s",
            LogWriter::Plain,
            Spread::of(&syncs).context("no rounds")?
        );
        for (way, ratios) in ratios {
            println!("  {way:<10} {} of it", Spread::of(&ratios).context("no rounds")?);
        }
    }
    Ok(())
}

/// A directory of this program's own on the disk that is measured.
struct Folder {
    path: PathBuf,
    plain: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that cannot be removed now are removed by the next run.
        drop(fs::remove_dir_all(&self.path));
    }
}

impl Folder {
    fn new(above: &Path) -> Result<Self> {
        let path = above.join("turno-bench-log");
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        let plain = File::create_new(path.join("plain"))?;
        plain.write_all_at(&vec![0; usize::try_from(PLAIN_BYTES)?], 0)?;
        plain.sync_all()?;
        Ok(Self { path, plain })
    }

    fn age(&self) -> Result<()> {
        for way in [LogWriter::Store, LogWriter::Committer] {
            let mut load = Load::open(&self.directory(way)?)?;
            let mut written = 0;
            while written < AGE_BYTES {
                load.turn(AGE_MESSAGES, 1)?;
                written += load.batch.len() as u64;
            }
        }
        Ok(())
    }

    fn directory(&self, way: LogWriter) -> Result<PathBuf> {
        let path = self.path.join(way.to_string());
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Seconds a sync, of each.
    fn round(&self, size: u64, dice: &mut Rng) -> Result<BTreeMap<LogWriter, f64>> {
        let mut plain = Plain::new(&self.plain, size);
        let mut store = Load::open(&self.directory(LogWriter::Store)?)?;
        let mut committer = Group::start(Load::open(&self.directory(LogWriter::Committer)?)?)?;
        let mut new_files = Load::open(&self.directory(LogWriter::NewFiles)?)?;
        let mut costs: BTreeMap<LogWriter, Vec<f64>> = BTreeMap::new();
        let begun = Instant::now();
        while begun.elapsed() < ROUND {
            let mut ways = LogWriter::ALL;
            dice.shuffle(&mut ways);
            for way in ways {
                let turn = Instant::now();
                let syncs = match way {
                    LogWriter::Plain => plain.turn()?,
                    LogWriter::Store => store.turn(size, TURN)?,
                    LogWriter::Committer => committer.turn(size)?,
                    LogWriter::NewFiles => new_files.turn(size, TURN)?,
                };
                costs.entry(way).or_default().push(turn.elapsed().as_secs_f64() / f64::from(syncs));
            }
        }
        fs::remove_dir_all(self.directory(LogWriter::NewFiles)?)?;
        Ok(costs.into_iter().map(|(way, costs)| (way, median(&costs))).collect())
    }
}

/// The loop that does nothing else.
struct Plain<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    at: u64,
}

impl<'a> Plain<'a> {
    fn new(file: &'a File, size: u64) -> Self {
        let mut batch = Batch::new();
        fill(&mut batch, &mut 0, size);
        // The mark that ends a batch has 96 bytes.
        Self { file, bytes: vec![7; batch.len() + 96], at: 0 }
    }

    fn turn(&mut self) -> Result<u32> {
        for _ in 0..TURN {
            let end = self.at + self.bytes.len() as u64;
            let at = if end > PLAIN_BYTES { 0 } else { self.at };
            self.file.write_all_at(&self.bytes, at)?;
            self.file.sync_data()?;
            self.at = at + self.bytes.len() as u64;
        }
        Ok(TURN)
    }
}

/// Messages that come and go.
struct Load {
    store: Embedded<FsDisk>,
    last: CommitNo,
    next: u64,
    batch: Batch,
}

impl Load {
    fn open(path: &Path) -> Result<Self> {
        let settings = Settings { salt: clock_seed()?, ..Settings::default() };
        let (mut store, _) = Embedded::open(FsDisk::new(path.to_owned()), settings)?;
        let (last, next) = (store.last_commit()?, store.last_record().0 + 1);
        Ok(Self { store, last, next, batch: Batch::new() })
    }

    fn turn(&mut self, size: u64, syncs: u32) -> Result<u32> {
        for _ in 0..syncs {
            self.batch.clear();
            fill(&mut self.batch, &mut self.next, size);
            self.last = self.last.next();
            self.store.commit(self.store.epoch(), self.last, &mut self.batch)?;
        }
        Ok(syncs)
    }
}

/// The same by the group committer: one batch is gathered while another is synced, as in a broker.
struct Group {
    committer: Committer,
    woken: Receiver<()>,
    next: u64,
    durable: Ticket,
    /// Each is one sync: two batches that met are one.
    syncs: u32,
}

impl Group {
    fn start(load: Load) -> Result<Self> {
        let (wake, woken) = sync_channel(WAKES_MAX);
        let committer = Committer::start(load.store, move || wake.send(()).unwrap_or_default())?;
        Ok(Self { committer, woken, next: load.next, durable: Ticket(0), syncs: 0 })
    }

    fn turn(&mut self, size: u64) -> Result<u32> {
        let before = self.syncs;
        let mut last = self.durable;
        for _ in 0..TURN {
            fill(self.committer.batch(), &mut self.next, size);
            self.committer.end_group();
            self.committer.submit();
            self.wait(last)?;
            last.0 += 1;
        }
        self.wait(last)?;
        Ok(self.syncs - before)
    }

    fn wait(&mut self, until: Ticket) -> Result<()> {
        let mut done = Vec::new();
        while self.durable < until {
            self.woken.recv()?;
            self.syncs += 1;
            self.committer.take_done(&mut done);
            for done in done.drain(..) {
                match done {
                    Done::Durable(ticket) => self.durable = ticket,
                    other => bail!("the committer says {other:?}"),
                }
            }
        }
        Ok(())
    }
}

fn fill(batch: &mut Batch, next: &mut u64, size: u64) {
    for _ in 0..size {
        batch.put(Space(3), RecordNo(*next), &VALUE);
        batch.delete(RecordNo(next.saturating_sub(PENDING)));
        *next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways through the store, for a moment, on the disk of the tests.
    #[test]
    fn a_load_runs_through_store_and_committer() {
        let folder = std::env::temp_dir().join(format!("turno-bench-log-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(Load::open(&folder).unwrap().turn(3, 5).unwrap(), 5);
        let syncs = Group::start(Load::open(&folder).unwrap()).unwrap().turn(3).unwrap();
        assert!((1..=TURN).contains(&syncs), "{syncs}");
        let load = Load::open(&folder).unwrap();
        assert!(load.store.usage().numbered <= PENDING, "{:?}", load.store.usage());
        fs::remove_dir_all(&folder).unwrap();
    }
}
