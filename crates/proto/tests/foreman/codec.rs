//! Bytes to values and back.

use proptest::prelude::*;
use turno_proto::foreman::{
    BadBody, CloseReason, Counts, ErrorCode, ForemanFrame, ForemanKind, Hello, Role, Running, StatusUpdate, Stop, Task,
    TaskPair, decode, encode, split,
};
use turno_proto::model::limits;

fn written(frame: &ForemanFrame) -> Vec<u8> {
    let mut out = Vec::new();
    encode(frame, &mut out);
    out
}

fn read(bytes: &[u8]) -> Result<ForemanFrame, BadBody> {
    decode(&split(bytes, usize::MAX).expect("a sound header").expect("a whole frame"))
}

/// A frame with that body.
pub(crate) fn framed(kind: ForemanKind, seq: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a small body");
    let mut bytes = vec![0x47, 0xC0, kind.number(), 0];
    bytes.extend_from_slice(&seq.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The eight types, their numbers, and who sends them. 0 and 6 are not among them. Proves S4.1 and S4.3.
#[test]
fn the_types() {
    let numbers: Vec<(u8, &str)> = ForemanKind::ALL.iter().map(|kind| (kind.number(), kind.name())).collect();
    let known =
        [(1, "OK"), (2, "HELLO"), (3, "JOB"), (4, "UPDATE"), (5, "CANCEL"), (7, "STOP"), (8, "ERROR"), (9, "RESET")];
    assert_eq!(numbers, known);
    for number in 0..=u8::MAX {
        let found = ForemanKind::from_number(number).map(ForemanKind::number);
        assert_eq!(found, known.iter().map(|(known, _)| *known).find(|known| *known == number));
    }
    let sent_by = |role| ForemanKind::ALL.iter().filter(|kind| kind.is_sent_by(role)).map(|kind| kind.name()).collect();
    let (worker, foreman): (Vec<_>, Vec<_>) = (sent_by(Role::Worker), sent_by(Role::Foreman));
    assert_eq!(worker, ["OK", "HELLO", "UPDATE", "ERROR", "RESET"]);
    assert_eq!(foreman, ["OK", "JOB", "CANCEL", "STOP", "ERROR", "RESET"]);
}

/// Sixteen bytes, little-endian: magic, type, subtype, seq, padding, arg0. In the pair of an OK the busy processors come
/// first. Proves S4.2, S4.6, S4.38 and S4.39.
#[test]
fn the_header() {
    let counts = Counts { nrun: 0x0102, nproc: 0x0304 };
    assert_eq!(counts.to_word(), 0x0304_0102);
    let bytes = written(&ForemanFrame::Ok { seq: 0x0A0B_0C0D, counts });
    assert_eq!(bytes, [0x47, 0xC0, 1, 0, 0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0, 0x02, 0x01, 0x04, 0x03]);
}

/// Padding, and the subtype of all but ERROR, are written as zero and ignored when read. Proves S4.4 and S4.8.
#[test]
fn what_has_no_meaning_is_ignored() {
    for frame in samples() {
        let mut bytes = written(&frame);
        assert_eq!(&bytes[8..12], [0; 4]);
        bytes[8..12].copy_from_slice(&[1, 2, 3, 4]);
        if frame.kind() != ForemanKind::Error {
            assert_eq!(bytes[3], 0);
            bytes[3] = 99;
        }
        assert_eq!(read(&bytes), Ok(frame));
    }
}

/// arg0 is the length of what follows in HELLO, JOB, UPDATE and CANCEL; the others end with their header, whatever arg0
/// says. Proves S4.5, S4.37 and S4.62.
#[test]
fn which_types_have_a_body() {
    for frame in samples() {
        let bytes = written(&frame);
        let arg0 = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes"));
        let has_body =
            matches!(frame.kind(), ForemanKind::Hello | ForemanKind::Job | ForemanKind::Update | ForemanKind::Cancel);
        assert_eq!(frame.kind().has_body(), has_body);
        assert_eq!(bytes.len(), if has_body { 16 + usize::try_from(arg0).expect("small") } else { 16 });
    }
    let stop = ForemanFrame::Stop { seq: 1, stop: Stop::Immediate };
    assert_eq!(split(&written(&stop), 0).map(|piece| piece.map(|piece| piece.used)), Ok(Some(16)));
}

/// Wrong magic, unknown types and bodies beyond the limit end the connection, as soon as the header tells. Proves S4.7.
#[test]
fn what_ends_a_connection() {
    assert_eq!(split(b"GET / HTTP/1.1\r\n", 99), Err(CloseReason::BadMagic));
    assert_eq!(split(b"P", 99), Err(CloseReason::BadMagic), "at its first byte");
    for number in [0, 6, 10, 16, 255] {
        let mut bytes = written(&ForemanFrame::Reset { seq: 0, last: 0 });
        bytes[2] = number;
        assert_eq!(split(&bytes, 99), Err(CloseReason::UnknownType(number)));
    }
    let mut bytes = framed(ForemanKind::Job, 1, &[]);
    bytes[12..16].copy_from_slice(&(16 * 1024 * 1024_u32).to_le_bytes());
    assert_eq!(split(&bytes, limits::FOREMAN_BODY_BYTES_MAX), Ok(None), "the longest body is waited for");
    bytes[12] = 1;
    assert_eq!(split(&bytes, limits::FOREMAN_BODY_BYTES_MAX), Err(CloseReason::BodyTooLarge(16 * 1024 * 1024 + 1)));
}

/// STOP: 0 is all, 0xFFFFFFFF is at once, all between is a number of processors. Proves S4.44.
#[test]
fn stop_words() {
    assert_eq!((Stop::from_word(0), Stop::from_word(u32::MAX)), (Stop::All, Stop::Immediate));
    for (word, left) in [(0, 0), (1, 3), (4, 0), (5, 0), (65_537, 0), (u32::MAX - 1, 0), (u32::MAX, 0)] {
        assert_eq!((Stop::from_word(word).to_word(), Stop::from_word(word).left_of(4)), (word, left), "{word}");
    }
}

/// The code of an ERROR is its subtype. Proves S4.45.
#[test]
fn error_codes() {
    let codes: Vec<(u8, &str)> = ErrorCode::ALL.iter().map(|code| (code.number(), code.name())).collect();
    assert_eq!(codes, [(1, "overflow"), (2, "no_procs"), (3, "bad_seq"), (4, "no_such_job"), (5, "bad_message")]);
    for number in 0..=u8::MAX {
        let code = ErrorCode::from_number(number);
        assert_eq!(code.number(), number);
        let bytes = written(&ForemanFrame::Error { seq: 3, code, arg0: 0x0102_0304 });
        assert_eq!((bytes[2], bytes[3], &bytes[12..]), (8, number, &[4, 3, 2, 1][..]));
    }
}

/// A pair alone or a list of pairs; −1 is all tasks, other negative numbers are nothing. Proves S4.43.
#[test]
fn one_pair_or_many() {
    let pair = b"\x82\xa5JobId\x07\xa4Task\x01";
    let all = b"\x82\xa5JobId\x07\xa4Task\xff";
    let expected = |task| TaskPair { job: 7, task };
    let list = [&b"\x92"[..], pair, all].concat();
    for (body, pairs) in [
        (&pair[..], vec![expected(Some(1))]),
        (&all[..], vec![expected(None)]),
        (&list[..], vec![expected(Some(1)), expected(None)]),
        (b"\x90", vec![]),
    ] {
        assert_eq!(read(&framed(ForemanKind::Cancel, 1, body)), Ok(ForemanFrame::Cancel { seq: 1, pairs }));
    }
    assert_eq!(read(&framed(ForemanKind::Cancel, 1, b"\x82\xa5JobId\x07\xa4Task\xfe")), Err(BadBody));
}

/// Unknown keys are ignored, missing ones have their defaults, nil counts as missing, and a state may be a number.
#[test]
fn bodies_of_other_writers() {
    let body = b"\x91\x87\xa4Task\x01\xa5JobId\x02\xa6Secret\x93\x01\xc0\x80\xa4Name\xc0\xa6Status\x02\xa5Procs\x00\xa4Argv\xc0";
    let task = Task { task: 1, job: 2, status: "2".into(), ..Task::default() };
    assert_eq!(read(&framed(ForemanKind::Job, 1, body)), Ok(ForemanFrame::Job { seq: 1, tasks: vec![task] }));
    let hello = Hello { num_procs: 4, ..Hello::default() };
    for body in [&b"\x81\xa8NumProcs\x04"[..], b"\x82\xa8NumProcs\x04\xa7Running\xc0"] {
        assert_eq!(
            read(&framed(ForemanKind::Hello, 0, body)),
            Ok(ForemanFrame::Hello { seq: 0, hello: Some(hello.clone()) })
        );
    }
    assert_eq!(read(&framed(ForemanKind::Job, 1, b"\xc0")), Ok(ForemanFrame::Job { seq: 1, tasks: vec![] }));
}

fn samples() -> Vec<ForemanFrame> {
    vec![
        ForemanFrame::Ok { seq: 2, counts: Counts { nrun: 1, nproc: 2 } },
        ForemanFrame::Hello { seq: 0, hello: None },
        ForemanFrame::Hello { seq: 0, hello: Some(Hello { num_procs: 1, ..Hello::default() }) },
        ForemanFrame::Job { seq: 1, tasks: vec![Task::default()] },
        ForemanFrame::Update { seq: 4, update: StatusUpdate::default() },
        ForemanFrame::Cancel { seq: 3, pairs: vec![TaskPair { job: 1, task: None }] },
        ForemanFrame::Stop { seq: 5, stop: Stop::All },
        ForemanFrame::Error { seq: 7, code: ErrorCode::NoProcs, arg0: 9 },
        ForemanFrame::Reset { seq: 8, last: 7 },
    ]
}

prop_compose! {
    fn any_task()(
        (task, job, num_tasks, attempt, time_limit) in any::<(u32, u64, u32, u32, u64)>(),
        texts in prop::array::uniform5("\\PC{0,8}"),
        argv in prop::collection::vec("\\PC{0,8}", 0..4),
        env in prop::collection::btree_map("[A-Z]{1,4}", "\\PC{0,8}", 0..4),
        procs in 1..=u16::MAX,
    ) -> Task {
        let [name, working_dir, logging_dir, command, status] = texts;
        Task {
            task, job, name, num_tasks, working_dir, logging_dir, command, status, attempt, argv, env, procs, time_limit,
            ..Task::default()
        }
    }
}

fn any_hello() -> impl Strategy<Value = Hello> {
    let running = (1..9_u16, any::<u32>(), any::<u64>());
    let list = prop::collection::btree_map(any::<u32>(), running, 0..6);
    (0..=limits::FOREMAN_PROCS_MAX, list, "\\PC{0,8}", "\\PC{0,8}").prop_map(|(num_procs, list, name, id)| {
        let entry = |(task, (procs, attempt, job))| Running { task, job, attempt, procs };
        Hello { num_procs, running: list.into_iter().map(entry).collect(), name, id, ..Hello::default() }
    })
}

fn any_update() -> impl Strategy<Value = StatusUpdate> {
    let times = (any::<Option<i32>>(), any::<Option<i32>>(), any::<Option<u64>>(), any::<Option<u64>>());
    let first = (any::<u64>(), any::<u32>(), any::<[bool; 3]>(), any::<u32>());
    (first, "\\PC{0,8}", times).prop_map(|((job, task, [success, new_job, given_back], attempt), status, times)| {
        let (exit_code, signal, started, ended) = times;
        StatusUpdate { job, task, success, status, new_job, attempt, exit_code, signal, given_back, started, ended }
    })
}

fn any_frame() -> impl Strategy<Value = ForemanFrame> {
    let pair = any::<(u64, Option<u32>)>().prop_map(|(job, task)| TaskPair { job, task });
    prop_oneof![
        any::<(u32, u32)>().prop_map(|(seq, word)| ForemanFrame::Ok { seq, counts: Counts::from_word(word) }),
        (any::<u32>(), prop::option::of(any_hello())).prop_map(|(seq, hello)| ForemanFrame::Hello { seq, hello }),
        (any::<u32>(), prop::collection::vec(any_task(), 0..4))
            .prop_map(|(seq, tasks)| ForemanFrame::Job { seq, tasks }),
        (any::<u32>(), any_update()).prop_map(|(seq, update)| ForemanFrame::Update { seq, update }),
        (any::<u32>(), prop::collection::vec(pair, 0..4)).prop_map(|(seq, pairs)| ForemanFrame::Cancel { seq, pairs }),
        any::<(u32, u32)>().prop_map(|(seq, word)| ForemanFrame::Stop { seq, stop: Stop::from_word(word) }),
        any::<(u32, u8, u32)>().prop_map(|(seq, code, arg0)| ForemanFrame::Error {
            seq,
            code: ErrorCode::from_number(code),
            arg0
        }),
        any::<(u32, u32)>().prop_map(|(seq, last)| ForemanFrame::Reset { seq, last }),
    ]
}

proptest! {
    #[test]
    fn any_frame_comes_back_as_it_was(frame in any_frame()) {
        let bytes = written(&frame);
        prop_assert_eq!(read(&bytes), Ok(frame));
        for end in 0..bytes.len() {
            prop_assert_eq!(split(&bytes[..end], usize::MAX), Ok(None), "cut anywhere, it waits for the rest");
        }
    }

    #[test]
    fn any_damage_is_read_or_refused(frame in any_frame(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = written(&frame);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(Some(piece)) = split(&bytes, usize::MAX) {
            // What can be read can be written so that it is read again.
            if let Ok(frame) = decode(&piece) {
                prop_assert_eq!(read(&written(&frame)), Ok(frame));
            }
        }
    }
}
