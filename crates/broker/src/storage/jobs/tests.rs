//! The bytes of jobs, tasks and chunks are fixed, and bytes that are none are refused.

use turno_engine::{
    DiskEffect, Effect, Engine, ForemanEvent, ForemanOrder, Hello, Input, NativeEffect, PeerEffect, Settings,
    StoreSettings, Update,
};
use turno_proto::items::Builder;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::TaskCounts;
use turno_proto::model::{ConnId, Mono};
use turno_store::{Batch, Mem, MemMedium, Store};

use super::super::ledger;
use super::*;

fn job() -> JobRecord {
    let spec = JobSpec {
        slots: 3,
        priority: 9,
        max_parallel: Some(4),
        time_limit_ms: Some(5),
        retries: 2,
        backoff_ms: 6,
        after: vec![After { job: JobId(7), when: AfterWhen::Failed }],
        hold: true,
        key: Some("k".to_owned()),
        ..JobSpec::new("build", Array { first: 1, count: 10, step: 2 }, Bytes::from_static(b"\x80"))
    };
    let cancelled = vec![(0, 1), (3, 9)];
    JobRecord { spec: Arc::new(spec), held: true, cancelled, cancelled_unix_ms: Some(9), ..plain_of(8) }
}

/// Tasks of it were retried.
fn retried() -> JobRecord {
    JobRecord { started_unix_ms: Some(10), forgiven: 258, passed: 1, ..job() }
}

/// The job that it comes after ended otherwise than it had to.
fn missed() -> JobRecord {
    JobRecord { missed: 1, ..job() }
}

fn plain_of(submitted_unix_ms: u64) -> JobRecord {
    JobRecord {
        spec: Arc::new(JobSpec::new("", Array::ONE, Bytes::new())),
        submitted_unix_ms,
        held: false,
        cancelled: Vec::new(),
        cancelled_unix_ms: None,
        started_unix_ms: None,
        forgiven: 0,
        passed: 0,
        missed: 0,
    }
}

/// With needs and tags, which jobs of before do not have.
fn needy() -> JobRecord {
    let spec = JobSpec {
        labels: vec![("gpu".to_owned(), "yes".to_owned()), ("pool".to_owned(), String::new())],
        max_failures: Some(258),
        tags: vec!["nightly".to_owned()],
        uploads: vec![UploadId([7; 32])],
        ..JobSpec::clone(&plain().spec)
    };
    JobRecord { spec: Arc::new(spec), ..plain() }
}

/// Tasks 1, 3 and 5 to 8: a list of numbers.
fn listed() -> JobRecord {
    let part = |first, count| Array { first, count, step: 1 };
    let parts = vec![part(1, 1), part(3, 1), part(5, 4)];
    let spec = JobSpec { array: part(1, 6), parts, ..JobSpec::clone(&plain().spec) };
    JobRecord { spec: Arc::new(spec), ..plain() }
}

fn plain() -> JobRecord {
    let spec = JobSpec {
        name: String::new(),
        work: Bytes::new(),
        max_parallel: None,
        time_limit_ms: None,
        after: Vec::new(),
        hold: false,
        key: None,
        ..JobSpec::clone(&job().spec)
    };
    JobRecord { spec: Arc::new(spec), ..plain_of(8) }
}

fn end(status: &str) -> TaskEnd {
    TaskEnd {
        state: TaskState::Failed,
        attempt: 3,
        worker: Arc::from("w"),
        started_unix_ms: 1,
        ended_unix_ms: 2,
        exit_code: Some(-1),
        signal: Some(9),
        status: Arc::from(status),
    }
}

fn tasks() -> [TaskRecord; 4] {
    let tried = AttemptCounts { attempt: 258, failures: 2, losses: 1 };
    let bare = TaskEnd { state: TaskState::Finished, exit_code: None, signal: None, worker: Arc::default(), ..end("") };
    [
        TaskRecord::Waiting { tried, due_unix_ms: 77 },
        TaskRecord::Running { tried, key: Arc::from("id"), worker: Arc::from("name"), started_unix_ms: 5 },
        TaskRecord::Ended(end("no")),
        TaskRecord::Ended(bare),
    ]
}

fn chunk() -> ChunkRecord {
    let short = ShortEnd { bits: 2 | 4, signal: 0, attempt: 1, worker: 1, exit_code: -2, began: 3, took_ms: 4 };
    ChunkRecord {
        tasks: vec![short, ShortEnd::default()],
        workers: vec![Arc::from("ab")],
        statuses: vec![(0, Arc::from("no"))],
    }
}

/// Proves that what outlives the broker is written in the bytes of docs/reference/storage.md, and read back as it was (I20).
#[test]
fn records_have_these_bytes() {
    let mut bytes = vec![0x3f, 9, 2, 1, 3, 0, 5, 1];
    for number in [1u32, 10, 2, 6] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(8u64.to_le_bytes());
    bytes.extend(4u32.to_le_bytes());
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(9u64.to_le_bytes());
    bytes.extend(7u64.to_le_bytes());
    bytes.push(2);
    for number in [2u32, 0, 1, 3, 9] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"buildk\x80");
    assert_eq!(write_job(&job()), bytes);
    bytes[60] |= 128;
    assert_eq!(write_job(&missed()), bytes);
    bytes[60] &= !128;
    bytes[0] |= 128;
    bytes.splice(52..52, *b"\x0a\0\0\0\0\0\0\0\x02\x01\0\0\x01\0");
    assert_eq!(write_job(&retried()), bytes);

    let more = [&b"\x01\x02\x01\x01\x02\x01\0\0\x03gpu\x03yes\x04pool\0\x07nightly"[..], &[7; 32]].concat();
    let mut bytes = write_job(&plain());
    bytes[0] |= 64;
    bytes.extend(more);
    assert_eq!(write_job(&needy()), bytes);

    let [waiting, running, ended, _] = tasks();
    assert_eq!(write_task(&waiting), b"\0\x02\x01\0\0\x02\0\x01\x4d\0\0\0\0\0\0\0");
    assert_eq!(write_task(&running), b"\x01\x02\x01\0\0\x02\0\x01\x05\0\0\0\0\0\0\0\x02idname");
    let expected = b"\x02\x0e\x03\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff\x09\0\0\0\x01wno";
    assert_eq!(write_task(&ended), expected);

    let expected = b"\x02\0\x06\0\x01\0\x01\0\xfe\xff\x03\0\0\0\x04\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x02ab\x01\0\0\0\x02\0no";
    assert_eq!(write_chunk(&chunk()), expected);
    assert_eq!(part_key(JobId(1), 258), *b"\0\0\0\0\0\0\0\x01\0\0\x01\x02");
}

/// Proves I20: nothing about a job changes on its way to the disk and back.
#[test]
fn records_come_back_as_they_were() {
    let mut stored = StoredJobs::default();
    for record in [job(), plain(), needy(), listed(), retried(), missed()] {
        assert_eq!(take(JOBS, &job_key(JobId(3)), &write_job(&record), &mut stored), Some(()));
        assert_eq!(stored.jobs.pop(), Some((JobId(3), record)));
    }
    let mut items = Builder::new(2).unwrap();
    items.push(&["a", "b"]).unwrap();
    let items = items.finish();
    assert_eq!(take(ITEMS, &job_key(JobId(3)), &items, &mut stored), Some(()));
    assert_eq!(stored.items.pop(), Some((JobId(3), items)));
    for record in tasks() {
        assert_eq!(take(TASKS, &part_key(JobId(3), 4), &write_task(&record), &mut stored), Some(()));
        assert_eq!(stored.tasks.pop(), Some((JobId(3), 4, record)));
    }
    assert_eq!(take(CHUNKS, &part_key(JobId(3), 4), &write_chunk(&chunk()), &mut stored), Some(()));
    assert_eq!(stored.chunks.pop(), Some((JobId(3), 4, chunk())));
}

/// Whatever stands on the disk, reading it neither panics nor makes something of what is nothing.
#[test]
fn what_is_no_record_is_refused() {
    let whole = write_job(&job());
    for cut in 0..whole.len() - 1 {
        assert_eq!(read_job(&whole[..cut]), None, "{cut}");
    }
    let needs = write_job(&needy());
    for cut in 0..needs.len() {
        assert_eq!(read_job(&needs[..cut]), None, "{cut}");
    }
    for (at, byte) in [(36, 4), (37, 3), (38, 2), (39, 2), (44, 0xff)] {
        let mut other = needs.clone();
        other[at] = byte;
        assert_eq!(read_job(&other), None, "{at}");
    }
    for (at, byte) in [(1, 10), (4, 0), (12, 0), (16, 0), (60, 3), (64, 0xff)] {
        let mut other = whole.clone();
        other[at] = byte;
        assert_eq!(read_job(&other), None, "{at}");
    }
    for record in [&tasks()[0], &tasks()[1]] {
        let whole = write_task(record);
        for cut in 0..16 {
            assert_eq!(read_task(&whole[..cut]), None, "{cut}");
        }
    }
    for wrong in [&b"\x03"[..], b"\x02\0", b"\x02\x10", &[&write_task(&tasks()[0])[..], b"x"].concat()] {
        assert_eq!(read_task(wrong), None, "{wrong:?}");
    }
    let whole = write_chunk(&chunk());
    for cut in 0..whole.len() {
        assert_eq!(read_chunk(&whole[..cut]), None, "{cut}");
    }
    for (at, byte) in [(1, 0x10), (2, 0x13), (2, 4), (41, 2), (45, 0xff)] {
        let mut other = whole.clone();
        other[at] = byte;
        assert_eq!(read_chunk(&other), None, "{at}");
    }
    let mut stored = StoredJobs::default();
    assert_eq!(take(ITEMS, &job_key(JobId(1)), b"\x02", &mut stored), None);
    assert_eq!(take(ITEMS, &part_key(JobId(1), 1), b"\x01\x01\0\0\0\0\0", &mut stored), None);
    assert_eq!(take(JOBS, b"short", &write_job(&job()), &mut stored), None);
    assert_eq!(take(JOBS, &part_key(JobId(1), 1), &write_job(&job()), &mut stored), None);
    assert_eq!(take(TASKS, &job_key(JobId(1)), &write_task(&tasks()[0]), &mut stored), None);
}

fn engine() -> Engine {
    let store = Some(StoreSettings { run: 1, unix_ms: 0, last_serial: 0 });
    Engine::new(Settings { store, ..Settings::default() }, Mono::from_millis(1_000))
}

/// Lets the engine work until nothing is left to be stored.
fn run(engine: &mut Engine, store: &mut Mem, input: Input) -> Vec<Effect> {
    let mut told = Vec::new();
    let mut inputs = vec![input];
    while let Some(input) = inputs.pop() {
        let mut out = Vec::new();
        engine.handle(Mono::from_millis(1_000), input, &mut out);
        let mut batch = Batch::new();
        let mut last = None;
        for effect in out {
            match effect {
                Effect::Disk(DiskEffect::Persist { group, op }) => {
                    ledger::write(&op, &mut batch);
                    last = Some(group);
                }
                other => told.push(other),
            }
        }
        if let Some(group) = last {
            let no = store.last_commit().unwrap().next();
            store.commit(store.epoch(), no, &mut batch).unwrap();
            inputs.push(Input::Persisted { group });
        }
    }
    told
}

fn counts(engine: &mut Engine, store: &mut Mem, conn: ConnId) -> TaskCounts {
    let told = run(engine, store, Input::Admin { conn, seq: 9, call: AdminCall::JobShow { job: None } });
    match &told[..] {
        [Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })] => match &**answer {
            AdminAnswer::Job { job } => job.counts,
            other => panic!("{other:?} is no job"),
        },
        other => panic!("{other:?} is no answer"),
    }
}

/// Proves I20 with the store's own bytes: a broker that begins anew knows its jobs, running tasks and ended ones.
#[test]
fn a_store_brings_jobs_back() {
    let medium = MemMedium::new();
    let mut store = Mem::open(&medium);
    let mut first = engine();
    let (admin, job_worker) = (ConnId { index: 0, generation: 1 }, ConnId { index: 1, generation: 1 });
    let connected = || Input::Connected { conn: admin, name: String::new(), address: String::new() };
    run(&mut first, &mut store, connected());
    let array = Array { first: 1, count: 1_030, step: 1 };
    let spec =
        JobSpec { after: Vec::new(), hold: false, max_parallel: None, slots: 1, array, ..JobSpec::clone(&job().spec) };
    let call = AdminCall::JobSubmit { spec: Box::new(spec) };
    run(&mut first, &mut store, Input::Admin { conn: admin, seq: 1, call });
    let event = |event| Input::Foreman { conn: job_worker, event: Box::new(event) };
    run(&mut first, &mut store, event(ForemanEvent::Connected { address: String::new() }));
    let hello = Hello { id: Some("w".to_owned()), slots: 256, ..Hello::default() };
    let mut told = run(&mut first, &mut store, event(ForemanEvent::Hello(hello)));
    let mut ended = 0;
    while ended < 1_026 {
        let (offer, tasks) = told
            .iter()
            .find_map(|effect| match effect {
                Effect::Peer(PeerEffect::Foreman { order, .. }) => match &**order {
                    ForemanOrder::Offer { offer, tasks } => Some((*offer, tasks.clone())),
                    _ => None,
                },
                _ => None,
            })
            .expect("there is more to do");
        told = run(&mut first, &mut store, event(ForemanEvent::Accepted { offer }));
        for task in tasks.iter().take(1_026 - ended) {
            let update = Update {
                request: 1,
                job: task.job,
                task: task.task,
                attempt: Some(1),
                success: true,
                given_back: false,
                exit_code: Some(0),
                signal: None,
                status: String::new(),
                started_unix_ms: None,
                ended_unix_ms: None,
            };
            told.extend(run(&mut first, &mut store, event(ForemanEvent::Update(update))));
            ended += 1;
        }
    }
    let before = counts(&mut first, &mut store, admin);
    assert_eq!((before.finished, before.running, before.waiting), (1_026, 4, 0));
    let mut second = engine();
    ledger::recover(&mut Mem::open(&medium), &mut second).unwrap();
    second.sanity_check();
    run(&mut second, &mut store, connected());
    assert_eq!(counts(&mut second, &mut store, admin), before);
}
