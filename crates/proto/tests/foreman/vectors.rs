//! The golden vectors and their values agree, both ways and without gaps, and are what the two ends say.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::foreman::{
    Counts, ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanKind, ForemanSettings, Hello,
    RequestId, Running, StatusUpdate, Stop, Task, TaskFile, TaskPair, Worker, decode, encode, split,
};
use turno_proto::model::Mono;
use turno_proto::model::archive::UploadId;

use crate::golden::{self, Vector};
use crate::script::{ok, reset, ticket};

/// Every vector of the foreman's protocol.
pub(crate) fn all() -> Vec<Vector> {
    golden::read(include_str!("../../vectors/foreman.txt"))
}

fn task(task: u32) -> Task {
    Task {
        task,
        job: 7,
        name: "render".into(),
        num_tasks: 3,
        working_dir: "/srv/render".into(),
        logging_dir: "/srv/log".into(),
        command: "./frame".into(),
        status: "running".into(),
        attempt: 1,
        procs: u16::try_from(task).expect("small"),
        ..Task::default()
    }
}

fn done() -> StatusUpdate {
    StatusUpdate {
        job: 7,
        task: 1,
        success: true,
        status: "done".into(),
        attempt: 1,
        exit_code: Some(0),
        started: Some(1_700_000_000_000),
        ended: Some(1_700_000_001_500),
        ..StatusUpdate::default()
    }
}

fn cancelled() -> StatusUpdate {
    StatusUpdate {
        job: 7,
        task: 2,
        status: "cancelled".into(),
        attempt: 1,
        signal: Some(15),
        ..StatusUpdate::default()
    }
}

fn hello(num_procs: u16, running: Vec<Running>) -> ForemanFrame {
    ForemanFrame::Hello {
        seq: 0,
        hello: Some(Hello { num_procs, running, name: "w1".into(), id: "w1-7f3a".into(), ..Hello::default() }),
    }
}

const fn stop(seq: u32, word: u32) -> ForemanFrame {
    ForemanFrame::Stop { seq, stop: Stop::from_word(word) }
}

/// The worked conversation.
fn conversation() -> Vec<(&'static str, ForemanFrame)> {
    let cancel = vec![TaskPair { job: 7, task: Some(2) }];
    vec![
        ("example_banner", ok(0, 0, 0)),
        ("example_hello", hello(4, vec![])),
        ("example_hello_ok", ok(0, 0, 4)),
        ("example_job", ForemanFrame::Job { seq: 1, tasks: vec![task(1), task(2)] }),
        ("example_job_ok", ok(1, 3, 1)),
        ("example_update", ForemanFrame::Update { seq: 2, update: done() }),
        ("example_update_ok", ok(2, 2, 2)),
        ("example_cancel", ForemanFrame::Cancel { seq: 3, pairs: cancel }),
        ("example_cancel_ok", ok(3, 2, 2)),
        ("example_update_cancelled", ForemanFrame::Update { seq: 4, update: cancelled() }),
        ("example_update_cancelled_ok", ok(4, 0, 4)),
        ("example_stop_one", stop(5, 1)),
        ("example_stop_one_ok", ok(5, 0, 3)),
        ("example_reset", reset(6, 5)),
        ("example_reset_answer", reset(6, 4)),
        ("example_banner_again", ok(0, 0, 0)),
        ("example_hello_again", hello(3, vec![])),
        ("example_hello_again_ok", ok(0, 0, 3)),
        ("example_stop_all", stop(1, 0)),
        ("example_stop_all_ok", ok(1, 0, 0)),
    ]
}

fn with_files() -> Task {
    let upload = UploadId(std::array::from_fn(|at| u8::try_from(at).expect("few")));
    Task {
        working_dir: "/data".into(),
        dir_optional: true,
        stdin: Some(upload),
        files: vec![
            TaskFile { name: "sim".into(), upload, executable: true },
            TaskFile { name: "in/a.csv".into(), upload, executable: false },
        ],
        collect: vec!["*.csv".into()],
        ..task(1)
    }
}

fn others() -> Vec<(&'static str, ForemanFrame)> {
    let plain = Hello { num_procs: 65_534, ..Hello::default() };
    let running = vec![
        Running { task: 3, job: 7, attempt: 2, procs: 4 },
        Running { task: 1, job: 1 << 32, attempt: 0, procs: 1 },
    ];
    let labels = BTreeMap::from([("g".into(), "yes".into()), ("p".into(), "night".into())]);
    let labelled = Hello { num_procs: 4, labels, ..Hello::default() };
    let every_key = Task {
        task: u32::MAX,
        job: u64::MAX,
        name: "n".into(),
        num_tasks: 1_000_000,
        attempt: 3,
        argv: vec!["./run".into(), "-v".into()],
        env: BTreeMap::from([("A".into(), "1".into()), ("B".into(), String::new())]),
        procs: 65_534,
        time_limit: 60_000,
        ..Task::default()
    };
    let update_every_key = StatusUpdate {
        job: 1,
        task: 1,
        success: false,
        status: "killed".into(),
        new_job: true,
        attempt: 2,
        exit_code: Some(-1),
        signal: Some(9),
        started: Some(0),
        ended: Some(1),
        ..StatusUpdate::default()
    };
    let update_given_back = StatusUpdate {
        job: 1,
        task: 1,
        status: "given back".into(),
        attempt: 2,
        given_back: true,
        ..StatusUpdate::default()
    };
    let update_plain =
        StatusUpdate { job: 1, task: 1, success: true, status: "done".into(), ..StatusUpdate::default() };
    let pairs = vec![TaskPair { job: 7, task: Some(1) }, TaskPair { job: 8, task: None }];
    let error = |code, arg0| ForemanFrame::Error { seq: 17, code, arg0 };
    vec![
        ("ok_largest_counts", ok(0xFFFF_FFFD, 65_534, 65_534)),
        ("ok_send_hello", ForemanFrame::Ok { seq: 2, counts: Counts::SEND_HELLO }),
        ("hello_without_body", ForemanFrame::Hello { seq: 0, hello: None }),
        ("hello_plain", ForemanFrame::Hello { seq: 0, hello: Some(plain) }),
        ("hello_running", hello(8, running)),
        ("hello_labels", ForemanFrame::Hello { seq: 0, hello: Some(labelled) }),
        ("job_empty", ForemanFrame::Job { seq: 9, tasks: vec![] }),
        ("job_every_key", ForemanFrame::Job { seq: 11, tasks: vec![every_key] }),
        ("job_files", ForemanFrame::Job { seq: 12, tasks: vec![with_files()] }),
        ("update_every_key", ForemanFrame::Update { seq: 8, update: update_every_key }),
        ("update_given_back", ForemanFrame::Update { seq: 8, update: update_given_back }),
        ("update_plain", ForemanFrame::Update { seq: 10, update: update_plain }),
        ("cancel_list", ForemanFrame::Cancel { seq: 13, pairs }),
        ("stop_immediate", stop(15, u32::MAX)),
        ("error_overflow", error(ErrorCode::Overflow, 16)),
        ("error_no_procs", error(ErrorCode::NoProcs, Counts { nrun: 3, nproc: 1 }.to_word())),
        ("error_bad_seq", error(ErrorCode::BadSeq, 6)),
        ("error_no_such_job", error(ErrorCode::NoSuchJob, 0)),
        ("error_bad_message", error(ErrorCode::BadMessage, 0)),
        ("error_unknown", error(ErrorCode::Other(200), 0)),
        ("reset_last_of_worker", reset(0xFFFF_FFFE, 0xFFFF_FFFD)),
        ("reset_last_of_foreman", reset(0xFFFF_FFFF, 0)),
    ]
}

fn values() -> Vec<(&'static str, ForemanFrame)> {
    let mut values = conversation();
    values.extend(others());
    values
}

fn bytes_of(name: &str) -> Vec<u8> {
    let found = all().into_iter().find(|vector| vector.name == name);
    found.unwrap_or_else(|| panic!("vectors/foreman.txt has no {name}")).bytes
}

/// Proves S4.1, S4.2, S4.3, S4.5, S4.6, S4.38, S4.41, S4.42, S4.43, S4.44 and S4.45.
#[test]
fn every_value_is_written_with_the_golden_bytes() {
    for (name, frame) in values() {
        let mut out = b"what was there before".to_vec();
        let before = out.len();
        encode(&frame, &mut out);
        assert_eq!(out.split_off(before), bytes_of(name), "{name}");
        assert_eq!(out, b"what was there before", "{name}: encode appends and touches nothing else");
    }
}

/// Proves S4.1, S4.2, S4.3, S4.5, S4.6, S4.38, S4.41, S4.42, S4.43, S4.44 and S4.45.
#[test]
fn every_golden_frame_is_read_as_its_value() {
    let values: BTreeMap<&str, ForemanFrame> = values().into_iter().collect();
    for vector in all() {
        let value = values.get(vector.name).unwrap_or_else(|| panic!("no value stands for {}", vector.name));
        let piece = split(&vector.bytes, usize::MAX).expect("a sound header").expect("a whole frame");
        assert_eq!(piece.used, vector.bytes.len(), "{}", vector.name);
        assert_eq!(decode(&piece).as_ref(), Ok(value), "{}", vector.name);
        let start = format!("{} seq={}", value.kind().name(), value.seq());
        assert!(vector.frame.starts_with(&start), "{}: {}", vector.name, vector.frame);
    }
}

#[test]
fn there_is_a_vector_of_every_type_and_every_code() {
    let values = values();
    let names: BTreeSet<&str> = values.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), values.len(), "names are unique");
    let kinds: BTreeSet<ForemanKind> = values.iter().map(|(_, frame)| frame.kind()).collect();
    assert_eq!(kinds.len(), ForemanKind::ALL.len());
    for code in ErrorCode::ALL {
        assert!(values.iter().any(|(_, frame)| matches!(frame, ForemanFrame::Error { code: has, .. } if has == code)));
    }
}

/// The worked conversation is what the two ends really say, byte for byte. Proves S4.48, S4.70, S4.73 and S4.74.
#[test]
fn the_conversation_is_real() {
    let now = Mono::ZERO;
    let mut worker = Worker::new("w1", "w1-7f3a", 4, ForemanSettings::default()).expect("few processors");
    let mut foreman = Foreman::new(ForemanSettings::default());
    let mut said = Vec::new();
    worker.connect(now);
    foreman.connect(now);
    let mut talk = |worker: &mut Worker, foreman: &mut Foreman| {
        loop {
            let (mut to_worker, mut to_foreman) = (Vec::new(), Vec::new());
            foreman.take_output(&mut to_worker);
            said.extend_from_slice(&to_worker);
            worker.handle_bytes(now, &to_worker);
            worker.take_output(&mut to_foreman);
            said.extend_from_slice(&to_foreman);
            foreman.handle_bytes(now, &to_foreman);
            let events: Vec<ForemanEvent> = std::iter::from_fn(|| foreman.poll_event()).collect();
            if events.iter().any(|event| matches!(event, ForemanEvent::Hello { .. } | ForemanEvent::Update { .. })) {
                assert!(foreman.answer(now, ticket(&events), ForemanAnswer::Ok));
            } else if to_worker.is_empty() && to_foreman.is_empty() {
                break;
            }
        }
    };
    talk(&mut worker, &mut foreman);
    foreman.offer(now, RequestId(1), vec![task(1), task(2)]);
    talk(&mut worker, &mut foreman);
    worker.task_ended(now, done());
    talk(&mut worker, &mut foreman);
    foreman.cancel(now, RequestId(2), vec![TaskPair { job: 7, task: Some(2) }]);
    talk(&mut worker, &mut foreman);
    worker.task_ended(now, cancelled());
    talk(&mut worker, &mut foreman);
    foreman.stop(now, RequestId(3), Stop::from_word(1));
    talk(&mut worker, &mut foreman);
    worker.reset(now);
    talk(&mut worker, &mut foreman);
    foreman.stop(now, RequestId(4), Stop::All);
    talk(&mut worker, &mut foreman);
    let expected: Vec<u8> = conversation().iter().flat_map(|(name, _)| bytes_of(name)).collect();
    assert_eq!(crate::script::frames(&said), crate::script::frames(&expected));
    assert_eq!(said, expected);
}
