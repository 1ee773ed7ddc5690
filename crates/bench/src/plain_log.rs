//! W4's other limit: a log that writes the same bytes in batches of the same size, syncs each, and does nothing else.
//!
//! How large Turno's batches were is in its store: it counts its commits and numbers its records. So the broker is
//! ended first and its store opened here; then the plain log runs on the same disk, in the same round. So does the store
//! alone, without a broker: what it lacks of the plain log is its own, what W4 lacks beyond that is the broker's.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use turno_store::disk::FsDisk;
use turno_store::{Batch, Embedded, RecordNo, Settings, Space, Store as _};

/// As long as a segment of the store. Written before, so that a sync has nothing to do but write.
const FILE_BYTES: usize = 64 << 20;
const RUN: Duration = Duration::from_millis(1_000);
/// Bytes after which the store goes round in its files.
const ROUND_BYTES: usize = 3 * FILE_BYTES;
/// Bytes of a record of the store beside the body: flags, numbers and times, and the name of the queue.
const BESIDE_BODY: usize = 14 + "bench".len();

/// How often a broker that has ended wrote and synced.
pub(crate) fn commits(store: &Path) -> Result<u64> {
    Ok(open(store)?.last_commit()?.0)
}

/// How many messages each sync of a broker that has ended made durable.
pub(crate) fn messages_per_sync(store: &Path) -> Result<f64> {
    let mut store = open(store)?;
    let commits = store.last_commit()?.0;
    let messages = store.last_record().0;
    if commits == 0 || messages == 0 {
        bail!("nothing was stored");
    }
    Ok(messages as f64 / commits as f64)
}

/// Bytes of the store that a message takes which is sent and acked.
pub(crate) fn message_bytes(body: usize) -> usize {
    let mut batch = Batch::new();
    batch.put(Space(1), RecordNo(1), &vec![7; BESIDE_BODY + body]);
    batch.delete(RecordNo(1));
    batch.len()
}

fn open(folder: &Path) -> Result<Embedded<FsDisk>> {
    Ok(Embedded::open(FsDisk::new(folder.to_owned()), Settings::default())?.0)
}

/// Messages a second that the store alone takes and lets go of, so many at a time.
pub(crate) fn store_rate(folder: &Path, body: usize, messages_per_sync: f64) -> Result<f64> {
    let folder = folder.join("store-alone");
    std::fs::create_dir(&folder)?;
    let mut store = open(&folder)?;
    let value = vec![7; BESIDE_BODY + body];
    let count = (messages_per_sync as u64).max(1);
    let (mut batch, mut first, mut bytes) = (Batch::new(), 1_u64, 0);
    let mut begun: Option<Instant> = None;
    let mut done = 0_u64;
    loop {
        batch.clear();
        for record in first..first + count {
            batch.put(Space(1), RecordNo(record), &value);
            // Deletes the records of the batch before this one; at first there are none.
            if record > count {
                batch.delete(RecordNo(record - count));
            }
        }
        let no = store.last_commit()?.next();
        store.commit(store.epoch(), no, &mut batch)?;
        first += count;
        bytes += batch.len();
        match begun {
            None if bytes >= ROUND_BYTES => begun = Some(Instant::now()),
            None => {}
            Some(begun) => {
                done += count;
                if begun.elapsed() >= RUN {
                    return Ok(done as f64 / begun.elapsed().as_secs_f64());
                }
            }
        }
    }
}

/// Messages of that many bytes a second, appended and synced so many at a time.
pub(crate) fn rate(folder: &Path, message_bytes: usize, messages_per_sync: f64) -> Result<f64> {
    let path = folder.join("plain-log");
    let file = File::create_new(&path).with_context(|| format!("cannot create {}", path.display()))?;
    let bytes = vec![7; ((messages_per_sync * message_bytes as f64) as usize).clamp(1, FILE_BYTES)];
    file.write_all_at(&vec![0; FILE_BYTES], 0)?;
    file.sync_all()?;
    let begun = Instant::now();
    let (mut syncs, mut at) = (0_u32, 0);
    while begun.elapsed() < RUN {
        if at + bytes.len() > FILE_BYTES {
            at = 0;
        }
        file.write_all_at(&bytes, at as u64)?;
        file.sync_data()?;
        at += bytes.len();
        syncs += 1;
    }
    Ok(f64::from(syncs) * messages_per_sync / begun.elapsed().as_secs_f64())
}
