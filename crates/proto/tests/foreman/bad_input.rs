//! What peers do wrong, and what comes of it: an ERROR with a stated code, or a closed connection with a stated reason.

use turno_proto::foreman::{
    BadBody, CloseReason, ConnectionNote, Counts, ErrorCode, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanKind,
    ForemanSettings, ForemanState, Hello, Outcome, RequestId, Running, StatusUpdate, Stop, Task, TooManyProcs, Worker,
    WorkerEndState, WorkerEvent, decode, encode, split,
};
use turno_proto::model::limits;

use crate::codec::framed;
use crate::script::{ForemanSeat, JOB, WorkerSeat, error, hello, job, ok, task_of, ticket, update, update_of};

fn bytes_of(frame: &ForemanFrame) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}

/// Each type from the wrong side is refused with `bad_message`, and the connection goes on. Proves S4.46.
#[test]
fn the_wrong_side() {
    let stop = |seq| ForemanFrame::Stop { seq, stop: Stop::All };
    let cancel = |seq| ForemanFrame::Cancel { seq, pairs: vec![] };
    let mut seat = ForemanSeat::greeted(2);
    for frame in [job(2, &[1]), stop(4), cancel(6), ForemanFrame::Stop { seq: 8, stop: Stop::Immediate }] {
        let (kind, seq) = (frame.kind(), frame.seq());
        let (frames, events) = seat.hears(&frame);
        assert_eq!(frames, [error(seq, ErrorCode::BadMessage, 0)]);
        assert_eq!(events, [ForemanEvent::Note(ConnectionNote::BadType { kind, seq })]);
    }
    assert_eq!(seat.offers(1, &[1]).0, [job(9, &[1])]);

    let mut seat = WorkerSeat::greeted(2);
    for frame in [hello(1, 4), update(3, 1)] {
        let (kind, seq) = (frame.kind(), frame.seq());
        let (frames, events) = seat.hears(&frame);
        assert_eq!(frames, [error(seq, ErrorCode::BadMessage, 0)]);
        assert_eq!(events, [WorkerEvent::Note(ConnectionNote::BadType { kind, seq })]);
    }
    assert_eq!(seat.hears(&job(5, &[1])).0, [ok(5, 1, 1)]);
}

/// HELLO twice: the second is the worker's state, too; the owner reconciles again. One with an old number is refused.
#[test]
fn hello_twice() {
    let mut seat = ForemanSeat::greeted(2);
    assert_eq!(seat.hears(&hello(0, 5)).0, [error(0, ErrorCode::BadSeq, 0)]);
    let events = seat.hears(&hello(2, 5)).1;
    let ticket_2 = ticket(&events);
    assert!(matches!(events[..], [ForemanEvent::Hello { again: true, .. }]), "{events:?}");
    // A third one before the second is answered waits for its turn.
    assert_eq!(seat.hears(&hello(4, 6)), (vec![], vec![]));
    let (frames, events) = seat.answers(ticket_2, ForemanAnswer::Ok);
    assert_eq!(frames, [ok(2, 0, 5)]);
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(4, 0, 6)]);
}

/// STOP, JOB and CANCEL before HELLO are refused; between HELLO and its OK they wait; STOP(immediate) is always obeyed.
/// Proves S4.18 and S4.32.
#[test]
fn requests_during_the_greeting() {
    let stop = |seq| ForemanFrame::Stop { seq, stop: Stop::from_word(1) };
    let mut seat = WorkerSeat::worker(2, ForemanSettings::default());
    for frame in [stop(1), job(3, &[1]), ForemanFrame::Cancel { seq: 5, pairs: vec![] }] {
        assert_eq!(seat.hears(&frame).0, [error(frame.seq(), ErrorCode::BadMessage, 0)]);
    }
    assert_eq!((seat.end.state(), seat.end.max_procs()), (WorkerEndState::Init0, 2));
    let (frames, _) = seat.hears(&ok(0, 0, 0));
    assert!(matches!(frames[..], [ForemanFrame::Hello { seq: 6, .. }]), "{frames:?}");
    assert_eq!(seat.hears(&stop(7)), (vec![], vec![]));
    let (frames, events) = seat.hears(&ok(6, 0, 2));
    assert_eq!(frames, [ok(7, 0, 1)]);
    assert_eq!(events, [WorkerEvent::Greeted, WorkerEvent::Stopping { max: 1 }]);
}

/// The owner's STOP during the greeting waits for its end.
#[test]
fn a_stop_of_the_owner_during_the_greeting() {
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    assert_eq!(seat.does(|foreman, now| foreman.stop(now, RequestId(1), Stop::All)), (vec![], vec![]));
    let events = seat.hears(&hello(0, 2)).1;
    assert_eq!(
        seat.answers(ticket(&events), ForemanAnswer::Ok).0,
        [ok(0, 0, 2), ForemanFrame::Stop { seq: 1, stop: Stop::All }]
    );
}

/// Bodies that are not what they should be: `bad_message`, and the connection goes on.
#[test]
fn bad_bodies() {
    let nested = |depth: usize| {
        let mut body = b"\x83\xa5JobId\x01\xa4Task\x01\xa1x".to_vec();
        body.extend(std::iter::repeat_n(0x91, depth));
        body.push(0xC0);
        body
    };
    let bodies: [(&str, Vec<u8>); 9] = [
        ("no MessagePack at all", b"\xc1\xff\xff".to_vec()),
        ("text", b"{\"JobId\": 1}".to_vec()),
        ("nothing", vec![]),
        ("a key is missing", b"\x81\xa5JobId\x01".to_vec()),
        ("a value has the wrong type", b"\x82\xa5JobId\xa1x\xa4Task\x01".to_vec()),
        ("more behind it", b"\x82\xa5JobId\x01\xa4Task\x01\x00".to_vec()),
        ("cut short", b"\x82\xa5JobId\x01\xa4Ta".to_vec()),
        ("four billion values in five bytes", b"\xdd\xff\xff\xff\xff".to_vec()),
        ("10,000 deep", nested(10_000)),
    ];
    let mut seat = ForemanSeat::greeted(2);
    for ((what, body), seq) in bodies.iter().zip((2..).step_by(2)) {
        let (frames, events) = seat.hears_bytes(&framed(ForemanKind::Update, seq, body));
        assert_eq!(frames, [error(seq, ErrorCode::BadMessage, 0)], "{what}");
        assert_eq!(events, [ForemanEvent::Note(ConnectionNote::BadBody { kind: ForemanKind::Update, seq })], "{what}");
    }
    let mut seat = WorkerSeat::greeted(2);
    for ((what, body), seq) in bodies.iter().zip((1..).step_by(2)) {
        let (frames, _) = seat.hears_bytes(&framed(ForemanKind::Job, seq, body));
        assert_eq!(frames, [error(seq, ErrorCode::BadMessage, 0)], "{what}");
    }
    // Sixteen levels are enough for everyone; the map itself is one of them.
    let read = |depth| decode(&split(&framed(ForemanKind::Update, 2, &nested(depth)), usize::MAX).unwrap().unwrap());
    assert!(read(limits::FOREMAN_DEPTH_MAX - 1).is_ok());
    assert_eq!(read(limits::FOREMAN_DEPTH_MAX), Err(BadBody));
}

/// A million tasks in one frame, whether they are there or only claimed: `bad_message`. As many as a worker can ever
/// have are read.
#[test]
fn a_million_tasks() {
    let list = |count: u32| {
        let mut body = vec![0xDD];
        body.extend_from_slice(&count.to_be_bytes());
        for task in 0..count {
            body.extend_from_slice(b"\x82\xa4Task\xce");
            body.extend_from_slice(&task.to_be_bytes());
            body.extend_from_slice(b"\xa5JobId\x01");
        }
        body
    };
    let most = u32::from(limits::FOREMAN_PROCS_MAX);
    // The fewest bytes a task can have still make a million of them too long; the limit is raised to show that
    // the number alone is refused as well.
    let settings = ForemanSettings { body_bytes_max: 64 << 20, ..ForemanSettings::default() };
    for (count, code) in
        [(1_000_000, ErrorCode::BadMessage), (most + 1, ErrorCode::BadMessage), (most, ErrorCode::NoProcs)]
    {
        let mut seat = WorkerSeat::greeted_with(2, settings);
        let (frames, _) = seat.hears_bytes(&framed(ForemanKind::Job, 1, &list(count)));
        assert!(
            matches!(frames[..], [ForemanFrame::Error { seq: 1, code: told, .. }] if told == code),
            "{count}: {frames:?}"
        );
    }
    let mut seat = WorkerSeat::greeted_with(limits::FOREMAN_PROCS_MAX, settings);
    assert_eq!(seat.hears_bytes(&framed(ForemanKind::Job, 1, &list(most))).0, [ok(1, 65_534, 0)]);
    let mut foreman = ForemanSeat::foreman(settings);
    let hello = [&b"\x82\xa8NumProcs\x01\xa7Running"[..], &list(1_000_000)].concat();
    assert_eq!(foreman.hears_bytes(&framed(ForemanKind::Hello, 0, &hello)).0, [error(0, ErrorCode::BadMessage, 0)]);
    assert_eq!(foreman.end.state(), ForemanState::Init1);
}

/// 65,535 processors cannot be said: a worker does not start with them, a HELLO with them is refused, and so is one whose
/// tasks take more than that together, or that names a task twice. Proves S4.40.
#[test]
fn too_many_processors() {
    assert_eq!(Worker::new("", "", 65_535, ForemanSettings::default()).err(), Some(TooManyProcs));
    assert!(Worker::new("", "", 65_534, ForemanSettings::default()).is_ok());
    let running = |task, procs| Running { task, job: JOB, attempt: 0, procs };
    let bad = [
        Hello { num_procs: 65_535, ..Hello::default() },
        Hello { num_procs: 4, running: vec![running(1, 65_535)], ..Hello::default() },
        Hello { num_procs: 4, running: vec![running(1, 40_000), running(2, 40_000)], ..Hello::default() },
        Hello { num_procs: 4, running: vec![running(1, 1), running(1, 1)], ..Hello::default() },
    ];
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    for (hello, seq) in bad.into_iter().zip((0..).step_by(2)) {
        let frame = ForemanFrame::Hello { seq, hello: Some(hello) };
        assert_eq!(seat.hears(&frame).0, [error(seq, ErrorCode::BadMessage, 0)], "{frame:?}");
    }
    assert_eq!(
        seat.hears(&ok(0, 0, 65_535)),
        (vec![], vec![ForemanEvent::Note(ConnectionNote::BadBody { kind: ForemanKind::Ok, seq: 0 })])
    );
    assert_eq!(seat.end.state(), ForemanState::Init1);
}

/// A foreman that gives a worker more and more while it never confirms an end cannot make it grow without limit.
#[test]
fn a_foreman_that_confirms_nothing() {
    let mut seat = WorkerSeat::greeted(40_000);
    let wide = |task| Task { procs: 40_000, ..task_of(task) };
    let give = |seat: &mut WorkerSeat, seq, task| seat.hears(&ForemanFrame::Job { seq, tasks: vec![wide(task)] }).0;
    assert_eq!(give(&mut seat, 1, 1), [ok(1, 40_000, 0)]);
    seat.does(|worker, _| worker.disconnect());
    let ended = StatusUpdate { job: JOB, task: 1, ..StatusUpdate::default() };
    seat.does(|worker, now| assert!(worker.task_ended(now, ended)));
    seat.does(Worker::connect);
    seat.hears(&ok(0, 0, 0));
    seat.hears(&ok(0, 40_000, 0));
    // The UPDATE is out, with number 2, and stays without an answer.
    assert!(matches!(give(&mut seat, 1, 2)[..], [ForemanFrame::Error { code: ErrorCode::NoProcs, .. }]));
}

/// What cannot be frames closes the connection, on both sides, and nothing is done after that. Proves S4.7.
#[test]
fn what_closes() {
    let mut unknown = bytes_of(&ok(0, 0, 0));
    unknown[2] = 6;
    let mut long = framed(ForemanKind::Job, 1, &[]);
    long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), CloseReason::BadMagic),
        (unknown, CloseReason::UnknownType(6)),
        (long, CloseReason::BodyTooLarge(u32::MAX)),
    ];
    for (bytes, reason) in cases {
        let mut worker = WorkerSeat::greeted(2);
        assert_eq!(worker.hears_bytes(&bytes), (vec![], vec![WorkerEvent::Close(reason)]));
        assert_eq!(worker.hears(&job(1, &[1])), (vec![], vec![]));
        assert_eq!(worker.end.next_deadline(), None);
        let mut foreman = ForemanSeat::greeted(2);
        assert_eq!(foreman.hears_bytes(&bytes), (vec![], vec![ForemanEvent::Close(reason)]));
        assert_eq!(foreman.hears(&hello(2, 2)), (vec![], vec![]));
        assert_eq!((foreman.end.state(), foreman.end.next_deadline()), (ForemanState::Exit, None));
    }
}

/// A body that is cut short by the end of the connection is never looked at: its bytes are not used. Proves S4.7.
#[test]
fn a_truncated_body() {
    let mut seat = WorkerSeat::greeted(2);
    let bytes = bytes_of(&job(1, &[1]));
    for end in 0..bytes.len() {
        assert_eq!(seat.end.handle_bytes(seat.now, &bytes[..end]), 0);
    }
    assert_eq!(seat.end.handle_bytes(seat.now, &[&bytes[..], &bytes[..5]].concat()), bytes.len());
}

/// A JOB that no worker would read is not sent, and refused as a worker would refuse it.
#[test]
fn a_job_that_is_too_long() {
    let mut seat = ForemanSeat::greeted_with(2, ForemanSettings { body_bytes_max: 200, ..ForemanSettings::default() });
    let task = Task { command: "x".repeat(300), ..task_of(1) };
    let (frames, events) = seat.does(|foreman, now| foreman.offer(now, RequestId(1), vec![task]));
    assert_eq!(frames, []);
    let outcome = Outcome::Refused { code: ErrorCode::BadMessage, counts: Counts { nrun: 0, nproc: 2 } };
    assert_eq!(events[1..], [ForemanEvent::Answered { id: RequestId(1), kind: ForemanKind::Job, outcome }]);
    assert_eq!(seat.waits(1_000).1, [ForemanEvent::Ready { room: 2 }]);
    assert!(matches!(seat.offers(2, &[1]).0[..], [ForemanFrame::Job { .. }]), "the next one is");
}

/// What waits for its turn is bounded in bytes, too: not sixteen times the longest body.
#[test]
fn long_requests_that_wait() {
    let mut seat =
        ForemanSeat::greeted_with(2, ForemanSettings { body_bytes_max: 1_000, ..ForemanSettings::default() });
    let long = |seq| {
        let update = StatusUpdate { status: "x".repeat(400), ..update_of(1) };
        ForemanFrame::Update { seq, update }
    };
    let first = ticket(&seat.hears(&long(2)).1);
    assert_eq!(seat.hears(&long(4)), (vec![], vec![]));
    assert_eq!(seat.hears(&long(6)), (vec![], vec![]));
    assert_eq!(seat.hears(&long(8)).0, [error(8, ErrorCode::Overflow, 2)]);
    let events = seat.answers(first, ForemanAnswer::Ok).1;
    assert_eq!(seat.hears(&long(10)).0, [], "there is room again");
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(4, 0, 2)]);
}

/// Texts for people are cut, at a character's border; an id that is too long is refused.
#[test]
fn long_texts() {
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    let said = Hello { name: "ä".repeat(200), id: "i".repeat(129), ..Hello::default() };
    let frame = ForemanFrame::Hello { seq: 0, hello: Some(said.clone()) };
    assert_eq!(seat.hears(&frame).0, [error(0, ErrorCode::BadMessage, 0)]);
    let said = Hello { id: "i".repeat(128), ..said };
    let events = seat.hears(&ForemanFrame::Hello { seq: 2, hello: Some(said) }).1;
    let [ForemanEvent::Hello { hello: Some(heard), .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((heard.name.len(), heard.id.len()), (128, 128));
    seat.answers(ticket(&events), ForemanAnswer::Ok);
    let update = StatusUpdate { status: "x".repeat(5_000), ..update_of(1) };
    let events = seat.hears(&ForemanFrame::Update { seq: 4, update }).1;
    let [ForemanEvent::Update { update, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(update.status.len(), 4_096);
}
