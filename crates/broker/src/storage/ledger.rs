//! The translation between changes of the engine and operations of the store, in both directions.

use std::collections::BTreeMap;

use turno_engine::{
    AttemptMark, Engine, NewRecord, Persist, Record, RecoveredMessage, Settings, StoreSettings, StoredJobs,
};
use turno_proto::model::{QueueName, limits};
use turno_store::disk::DiskFile;
use turno_store::{Batch, CommitError, Contents, Item, ReadError, RecordNo, Store};

use super::jobs::{self, CHUNKS, ITEMS, JOBS, TASKS};
use super::record::{self, DEDUP, MARKS, MESSAGES, NOTES, QUEUES};
use crate::error::StoreError;

/// The key of the number that the ids of this store's messages share.
const RUN: &[u8] = b"run";

/// The key of the highest term that a run with this store had.
const TERM: &[u8] = b"term";

/// The key of the highest term of a token that was heard of from another broker.
const TOKEN_TERM: &[u8] = b"token";

/// The key of the highest number that a job which was removed had.
const JOB: &[u8] = b"job";

/// Puts into the settings of an engine what it must know of its store before [`recover`] gives it the rest: whose ids
/// messages have (a new store takes those of `settings.run`), the last of them, and the term.
///
/// The engine's clock is taken to start at Unix time.
pub fn begin(store: &mut impl Store, settings: &mut Settings) -> Result<(), StoreError> {
    let last_serial = store.last_record().0;
    let run = match read_note(store, RUN)? {
        Some(found) => found,
        None => {
            write_note(store, RUN, settings.run)?;
            settings.run
        }
    };
    settings.term = begin_term(store, settings.term)?;
    settings.store = Some(StoreSettings { run, unix_ms: 0, last_serial });
    Ok(())
}

/// The term of a run that begins now: above those of all runs before it, and written down before its first token is
/// given out.
fn begin_term(store: &mut impl Store, unix_ms: u64) -> Result<u64, StoreError> {
    let term = read_note(store, TERM)?.map_or(unix_ms, |last| unix_ms.max(last + 1));
    match write_note(store, TERM, term) {
        // A broker whose disk is full may start. Its term is above the last one all the same; the next one is, unless the
        // clock is set back before there is room again.
        Err(StoreError::Commit(CommitError::Full)) => {
            tracing::warn!(term, "no disk space to store the term");
            Ok(term)
        }
        written => written.map(|()| term),
    }
}

fn read_note(store: &mut impl Store, key: &[u8]) -> Result<Option<u64>, StoreError> {
    let unreadable = || StoreError::Unreadable(format!("{:?}", String::from_utf8_lossy(key)));
    let number = |found: Vec<u8>| found.try_into().map(u64::from_le_bytes).map_err(|_| unreadable());
    store.read_key(NOTES, key)?.map(number).transpose()
}

fn write_note(store: &mut impl Store, key: &[u8], value: u64) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    batch.set(NOTES, key, &value.to_le_bytes());
    let no = store.last_commit()?.next();
    store.commit(store.epoch(), no, &mut batch)?;
    Ok(())
}

/// Gives the engine every message and every queue's settings that outlived the last run.
pub fn recover(store: &mut impl Store, engine: &mut Engine) -> Result<(), StoreError> {
    let mut marks = BTreeMap::new();
    let mut dedup = Vec::new();
    let mut unreadable = None;
    let mut jobs = StoredJobs::default();
    store.scan(&mut |item| {
        let known = match item {
            Item::Keyed { space: MARKS, key, value } => take_mark(key, value, &mut marks),
            Item::Keyed { space: DEDUP, key, value } => {
                record::read_dedup(key, value).map(|remembered| dedup.push(remembered))
            }
            Item::Numbered { space: MESSAGES, record: RecordNo(serial), value } => record::read(value).map(|record| {
                engine.recover(RecoveredMessage { serial, record, mark: marks.remove(&serial) });
            }),
            Item::Keyed { space: QUEUES, key, value } => take_settings(key, value, engine),
            Item::Keyed { space: space @ (JOBS | TASKS | CHUNKS | ITEMS), key, value } => {
                jobs::take(space, key, value, &mut jobs)
            }
            Item::Keyed { space: NOTES, key: JOB, value } => {
                value.try_into().ok().map(|last| jobs.last = u64::from_le_bytes(last))
            }
            Item::Keyed { space: NOTES, key: TOKEN_TERM, value } => {
                value.try_into().ok().map(|term| engine.recover_token_term(u64::from_le_bytes(term)))
            }
            Item::Keyed { space, .. } => (space == NOTES).then_some(()),
            Item::Numbered { .. } => None,
        };
        if known.is_none() && unreadable.is_none() {
            unreadable = Some(match item {
                Item::Keyed { space, key, .. } => format!("{key:02x?} of table {}", space.0),
                Item::Numbered { space, record, .. } => format!("{record} of table {}", space.0),
            });
        }
    })?;
    engine.recover_dedup(dedup);
    engine.recover_jobs(jobs);
    match unreadable {
        None => Ok(()),
        Some(which) => Err(StoreError::Unreadable(which)),
    }
}

fn take_mark(key: &[u8], value: &[u8], marks: &mut BTreeMap<u64, AttemptMark>) -> Option<()> {
    let serial = u64::from_be_bytes(key.try_into().ok()?);
    marks.insert(serial, record::read_mark(value)?);
    Some(())
}

fn take_settings(key: &[u8], value: &[u8], engine: &mut Engine) -> Option<()> {
    engine.recover_queue(QueueName::from_bytes(key).ok()?, record::read_settings(value)?);
    Some(())
}

/// Dead letters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dead {
    /// How many there are.
    pub count: u64,
    /// Bytes that they take in memory, with overhead and the texts of their last failures.
    pub bytes: u64,
}

/// The dead letters in a store that no broker has open, by queue.
pub fn dead_letters<F: DiskFile>(contents: &Contents<'_, F>) -> Result<BTreeMap<QueueName, Dead>, ReadError> {
    let mut failures = BTreeMap::new();
    contents.keyed(MARKS, &mut |key, value| {
        let mark = record::read_mark(value).and_then(|mark| Some((u64::from_be_bytes(key.try_into().ok()?), mark)));
        if let Some((serial, AttemptMark { failure: Some(failure), .. })) = mark {
            failures.insert(RecordNo(serial), failure.len());
        }
    })?;
    let mut dead: BTreeMap<QueueName, Dead> = BTreeMap::new();
    let serials: Vec<RecordNo> = failures.keys().copied().collect();
    contents.numbered(&serials, &mut |serial, (_, value)| {
        if let Some(Record { queue, payload, .. }) = record::read(value) {
            let Dead { count, bytes } = dead.entry(queue).or_default();
            *count += 1;
            *bytes += (payload.len() + failures[&serial] + limits::MESSAGE_OVERHEAD_BYTES) as u64;
        }
    })?;
    Ok(dead)
}

/// A message that was read by its serial.
pub(super) fn read(serial: u64, value: &[u8]) -> Result<Record, StoreError> {
    record::read(value).ok_or_else(|| StoreError::Unreadable(serial.to_string()))
}

/// One operation, as the store takes it.
pub(super) fn write(op: &Persist, batch: &mut Batch) {
    match op {
        Persist::Put { serial, record } => put(&NewRecord::of(0, *serial, record), batch),
        Persist::Remember(remembered) => batch.set(DEDUP, &remembered.key.0, &record::write_dedup(remembered)),
        Persist::Forget { key } => batch.unset(DEDUP, &key.0),
        Persist::Attempts { serial, attempts, wait } => {
            set_mark(batch, *serial, &AttemptMark { attempts: *attempts, failure: None, wait: *wait });
        }
        Persist::Dead { serial, attempts, failure } => {
            set_mark(batch, *serial, &AttemptMark { attempts: *attempts, failure: Some(failure.clone()), wait: None });
        }
        Persist::Retry { serial } => batch.unset(MARKS, &record::key(*serial)),
        Persist::SetQueue { queue, settings } => {
            batch.set(QUEUES, queue.as_str().as_bytes(), &record::write_settings(*settings));
        }
        Persist::UnsetQueue { queue } => batch.unset(QUEUES, queue.as_str().as_bytes()),
        Persist::SetJob { job, record } => batch.set(JOBS, &jobs::job_key(*job), &jobs::write_job(record)),
        Persist::SetItems { job, items } => batch.set(ITEMS, &jobs::job_key(*job), items),
        Persist::UnsetItems { job } => batch.unset(ITEMS, &jobs::job_key(*job)),
        Persist::UnsetJob { job } => batch.unset(JOBS, &jobs::job_key(*job)),
        Persist::TokenTerm { term } => batch.set(NOTES, TOKEN_TERM, &term.to_le_bytes()),
        Persist::LastJob { job } => batch.set(NOTES, JOB, &job.0.to_le_bytes()),
        Persist::SetTask { job, place, record } => {
            batch.set(TASKS, &jobs::part_key(*job, *place), &jobs::write_task(record));
        }
        Persist::UnsetTask { job, place } => batch.unset(TASKS, &jobs::part_key(*job, *place)),
        Persist::SetChunk { job, chunk, record } => {
            batch.set(CHUNKS, &jobs::part_key(*job, *chunk), &jobs::write_chunk(record));
        }
        Persist::UnsetChunk { job, chunk } => batch.unset(CHUNKS, &jobs::part_key(*job, *chunk)),
        Persist::Remove { serial, marked } => {
            batch.delete(RecordNo(*serial));
            if *marked {
                batch.unset(MARKS, &record::key(*serial));
            }
        }
    }
}

/// A new message, as the store takes it.
pub(super) fn put(put: &NewRecord<'_>, batch: &mut Batch) {
    batch.put_with(MESSAGES, RecordNo(put.serial), |out| record::write(put, out));
}

fn set_mark(batch: &mut Batch, serial: u64, mark: &AttemptMark) {
    let mut value = Vec::new();
    record::write_mark(mark, &mut value);
    batch.set(MARKS, &record::key(serial), &value);
}

#[cfg(test)]
mod tests {
    use turno_engine::{DiskEffect, Effect, Input, NativeEffect, PeerEffect};
    use turno_proto::model::admin::AdminCall;
    use turno_proto::model::job::{Array, JobId, JobSpec};
    use turno_proto::model::{ConnId, Mono, Slots};
    use turno_store::{Mem, MemMedium};

    use super::*;

    const CLOCK_MS: u64 = 1_800_000_000_000;

    const CONN: ConnId = ConnId { index: 1, generation: 1 };

    /// The effects of a broker that starts with that store and gets these inputs from one connection.
    fn said(medium: &MemMedium, inputs: Vec<Input>) -> Vec<Effect> {
        let mut store = Mem::open(medium);
        let mut settings = Settings { term: CLOCK_MS, ..Settings::default() };
        begin(&mut store, &mut settings).unwrap();
        let mut engine = Engine::new(settings, Mono::from_millis(CLOCK_MS));
        recover(&mut store, &mut engine).unwrap();
        let mut said: Vec<Effect> = Vec::new();
        let connected = Input::Connected { conn: CONN, name: "w".to_owned(), address: String::new() };
        for input in [connected, Input::Ready { conn: CONN }].into_iter().chain(inputs) {
            engine.handle(Mono::from_millis(CLOCK_MS), input, &mut said);
        }
        said
    }

    fn keep(medium: &MemMedium, op: &Persist) {
        let mut store = Mem::open(medium);
        let mut batch = Batch::new();
        write(op, &mut batch);
        let no = store.last_commit().unwrap().next();
        store.commit(store.epoch(), no, &mut batch).unwrap();
    }

    /// The term of the first token that a broker gives out which starts with that store.
    fn first_term(medium: &MemMedium) -> u64 {
        let conn = CONN;
        let said = said(
            medium,
            vec![
                Input::Open { conn, seq: 1, handle: 0, queue: "q".parse().unwrap() },
                Input::Register { conn, seq: 2, slots: Slots::Limited(1), name: "w".to_owned() },
                Input::Consume { conn, seq: 3, handle: 0, exclusive: true },
            ],
        );
        let token = said.iter().find_map(|effect| match effect {
            Effect::Peer(PeerEffect::Native { effect: NativeEffect::Consuming { token, .. }, .. }) => Some(*token),
            _ => None,
        });
        token.unwrap() >> 20
    }

    /// I8: tokens are higher than those of the run before, and than those that it heard of from a broker whose clock is ahead.
    #[test]
    fn tokens_that_were_heard_of_outlive_the_broker() {
        let medium = MemMedium::new();
        assert_eq!(first_term(&medium), CLOCK_MS);
        assert_eq!(first_term(&medium), CLOCK_MS + 1);
        keep(&medium, &Persist::TokenTerm { term: CLOCK_MS + 86_400_000 });
        assert_eq!(first_term(&medium), CLOCK_MS + 86_400_001);
        assert_eq!(first_term(&medium), CLOCK_MS + 86_400_001, "no higher than it has to be");
    }

    /// The number of a removed job is not given out again.
    #[test]
    fn numbers_of_removed_jobs_outlive_the_broker() {
        let medium = MemMedium::new();
        keep(&medium, &Persist::LastJob { job: JobId(7) });
        let spec = JobSpec::new("j".to_owned(), Array { first: 1, count: 1, step: 1 }, bytes::Bytes::from_static(b"x"));
        let call = AdminCall::JobSubmit { spec: Box::new(spec) };
        let said = said(&medium, vec![Input::Admin { conn: CONN, seq: 1, call }]);
        let jobs: Vec<JobId> = said
            .iter()
            .filter_map(|effect| match effect {
                Effect::Disk(DiskEffect::Persist { op: Persist::SetJob { job, .. }, .. }) => Some(*job),
                _ => None,
            })
            .collect();
        assert_eq!(jobs, [JobId(8)], "{said:?}");
    }
}
