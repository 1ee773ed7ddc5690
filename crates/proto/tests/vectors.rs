//! The golden vectors and their values agree, both ways and without gaps.

mod golden;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::archive::UploadId;
use turno_proto::model::{Code, limits};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{ClosingReason, Frame, HEADER_LEN, Header, Kind, decode, encode, split};

/// The value of each vector is written with exactly the vector's bytes. Proves S1.23 and S1.34. With `TURNO_BLESS=1` the
/// vectors of admin calls and answers are written anew, whose maps get new keys from time to time; look at the difference.
#[test]
fn every_value_is_written_with_the_golden_bytes() {
    if std::env::var_os("TURNO_BLESS").is_some() {
        bless();
    }
    let vectors = golden_by_name();
    for (name, frame) in values::all() {
        let mut out = b"what was there before".to_vec();
        let before = out.len();
        encode(&frame, &mut out);
        let written = out.split_off(before);
        let golden = vectors.get(name).unwrap_or_else(|| panic!("vectors/native.txt has no {name}"));
        assert_eq!(&written, golden, "{name}");
        assert_eq!(out, b"what was there before", "{name}: encode appends and touches nothing else");
    }
}

/// The bytes of each vector are read as exactly its value. Proves S1.23 and S1.34.
#[test]
fn every_golden_frame_is_read_as_its_value() {
    let values: BTreeMap<&str, Frame<'_>> = values::all().into_iter().collect();
    for vector in golden::all() {
        let value = values.get(vector.name).unwrap_or_else(|| panic!("no value stands for {}", vector.name));
        let piece = split(&vector.bytes, usize::MAX).expect("a sound frame").expect("a whole frame");
        assert_eq!(piece.used, vector.bytes.len(), "{}", vector.name);
        assert_eq!(decode(&piece.header, piece.rest).as_ref(), Ok(value), "{}", vector.name);
        assert_eq!(value.kind().number(), piece.header.kind, "{}", vector.name);
    }
}

/// Answers that carry bytes of messages, events and files say how many; all others say none.
#[test]
fn an_answer_counts_the_bytes_that_it_carries() {
    let carried: BTreeMap<&str, usize> = values::all()
        .into_iter()
        .filter_map(|(name, frame)| match frame {
            Frame::AdminAnswer { answer, .. } => Some((name, answer.payload_bytes())),
            _ => None,
        })
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    let expected = [("answer_dead_letter", 6), ("answer_events", 5), ("answer_output", 8), ("answer_piece", 4)];
    assert_eq!(carried, BTreeMap::from(expected));
}

#[test]
fn names_are_unique() {
    assert_eq!(golden_by_name().len(), golden::all().len());
    let values: BTreeSet<&str> = values::all().iter().map(|(name, _)| *name).collect();
    assert_eq!(values.len(), values::all().len());
}

#[test]
fn every_kind_has_a_vector() {
    let kinds: BTreeSet<Kind> = values::all().iter().map(|(_, frame)| frame.kind()).collect();
    let missing: Vec<&Kind> = Kind::ALL.iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The match forces a developer who adds a reason, a call or an answer to count it here and to write its vector.
#[test]
fn every_variant_inside_a_map_has_a_vector() {
    let (mut reasons, mut calls, mut answers) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (_, frame) in values::all() {
        match frame {
            Frame::Closing { closing } => {
                reasons.insert(match closing.reason {
                    ClosingReason::Shutdown => 0,
                    ClosingReason::Stop => 1,
                    ClosingReason::Now => 2,
                    ClosingReason::Maintenance => 3,
                    ClosingReason::Resumed => 4,
                });
            }
            Frame::AdminCall { call, .. } => {
                calls.insert(number_of_call(&call));
            }
            Frame::AdminAnswer { answer, .. } => {
                answers.insert(match answer {
                    AdminAnswer::Status { .. } => 0,
                    AdminAnswer::Queues { .. } => 1,
                    AdminAnswer::Queue { .. } => 2,
                    AdminAnswer::Consumers { .. } => 3,
                    AdminAnswer::Workers { .. } => 4,
                    AdminAnswer::Worker { .. } => 5,
                    AdminAnswer::Message { .. } => 6,
                    AdminAnswer::DeadLetters { .. } => 7,
                    AdminAnswer::DeadLetter { .. } => 8,
                    AdminAnswer::Portion { .. } => 9,
                    AdminAnswer::Jobs { .. } => 10,
                    AdminAnswer::Job { .. } => 11,
                    AdminAnswer::Tasks { .. } => 12,
                    AdminAnswer::OutputKept { .. } => 13,
                    AdminAnswer::Output { .. } => 14,
                    AdminAnswer::Files { .. } => 15,
                    AdminAnswer::Piece { .. } => 16,
                    AdminAnswer::Uploads { .. } => 17,
                    AdminAnswer::Retried { .. } => 18,
                    AdminAnswer::TaskExplained { .. } => 19,
                    AdminAnswer::Topics { .. } => 20,
                    AdminAnswer::Subscribers { .. } => 21,
                    AdminAnswer::Events { .. } => 22,
                    AdminAnswer::Links { .. } => 23,
                    AdminAnswer::LinkGraph { .. } => 24,
                    AdminAnswer::Ring { .. } => 25,
                    AdminAnswer::ZmqEndpoints { .. } => 26,
                });
            }
            _ => {}
        }
    }
    assert_eq!((reasons.len(), calls.len(), answers.len()), (5, 54, 27));
}

fn number_of_call(call: &AdminCall) -> u8 {
    match call {
        AdminCall::Status => 0,
        AdminCall::QueueLs { .. } => 1,
        AdminCall::QueueShow { .. } => 2,
        AdminCall::QueueConsumers { .. } => 3,
        AdminCall::WorkerLs { .. } => 4,
        AdminCall::WorkerShow { .. } => 5,
        AdminCall::WorkerResize { .. } => 6,
        AdminCall::WorkerDrain { .. } => 7,
        AdminCall::WorkerResume { .. } => 8,
        AdminCall::WorkerStop { .. } => 9,
        AdminCall::MessageExplain { .. } => 10,
        AdminCall::MessageCancel { .. } => 11,
        AdminCall::QueueSet { .. } => 12,
        AdminCall::QueuePurge { .. } => 13,
        AdminCall::DeadLs { .. } => 14,
        AdminCall::DeadShow { .. } => 15,
        AdminCall::DeadRetry { .. } => 16,
        AdminCall::DeadPurge { .. } => 17,
        AdminCall::Drain => 18,
        AdminCall::Resume => 19,
        AdminCall::JobSubmit { .. } => 20,
        AdminCall::JobLs { .. } => 21,
        AdminCall::JobShow { .. } => 22,
        AdminCall::JobTasks { .. } => 23,
        AdminCall::JobCancel { .. } => 24,
        AdminCall::JobHold { .. } => 25,
        AdminCall::JobRelease { .. } => 26,
        AdminCall::JobWait { .. } => 27,
        AdminCall::JobRm { .. } => 28,
        AdminCall::TaskOutput { .. } => 29,
        AdminCall::TaskFile { .. } => 30,
        AdminCall::JobOutput { .. } => 31,
        AdminCall::JobFiles { .. } => 32,
        AdminCall::JobFile { .. } => 33,
        AdminCall::UploadCheck { .. } => 34,
        AdminCall::UploadPut { .. } => 35,
        AdminCall::UploadGet { .. } => 36,
        AdminCall::JobRetry { .. } => 37,
        AdminCall::JobExplain { .. } => 38,
        AdminCall::TopicLs { .. } => 39,
        AdminCall::TopicSubscribers { .. } => 40,
        AdminCall::TopicCreate { .. } => 41,
        AdminCall::TopicRecv { .. } => 42,
        AdminCall::TopicDestroy { .. } => 43,
        AdminCall::LinkLs {} => 44,
        AdminCall::LinkAdd { .. } => 45,
        AdminCall::LinkRm { .. } => 46,
        AdminCall::LinkGraph {} => 47,
        AdminCall::Ring {} => 48,
        AdminCall::RingJoin { .. } => 49,
        AdminCall::RingLeave {} => 50,
        AdminCall::RingShutdown {} => 51,
        AdminCall::ZmqLs {} => 52,
        AdminCall::MessageRetry { .. } => 53,
    }
}

/// The limits of the calls about jobs agree with that of control maps.
#[test]
fn the_longest_calls_about_jobs_can_be_read() {
    let longest = values::all().into_iter().filter_map(|(_, frame)| match frame {
        Frame::AdminCall { seq, call: AdminCall::JobSubmit { mut spec } } => {
            let after = *spec.after.first()?;
            spec.after = vec![after; limits::JOB_AFTER_MAX];
            spec.work = vec![0; limits::WORK_BYTES_MAX].into();
            spec.items = vec![0; limits::ITEMS_BYTES_MAX].into();
            spec.labels = vec![("k".to_owned(), "v".to_owned()); limits::JOB_LABELS_MAX];
            spec.max_failures = Some(1);
            spec.tags = vec!["t".to_owned(); limits::JOB_TAGS_MAX];
            spec.uploads = vec![UploadId([7; 32]); limits::JOB_UPLOADS_MAX];
            Some(Frame::AdminCall { seq, call: AdminCall::JobSubmit { spec } })
        }
        Frame::AdminCall { seq, call: AdminCall::JobCancel { job, tasks: Some(ranges) } } => {
            let tasks = Some(vec![*ranges.last()?; limits::TASK_RANGES_MAX]);
            Some(Frame::AdminCall { seq, call: AdminCall::JobCancel { job, tasks } })
        }
        Frame::AdminCall { seq, call: AdminCall::TaskOutput { worker, pieces } } => {
            // One that has every key.
            let pieces = vec![pieces.into_iter().find(|piece| piece.live)?; limits::OUTPUT_PIECES_MAX];
            Some(Frame::AdminCall { seq, call: AdminCall::TaskOutput { worker, pieces } })
        }
        Frame::AdminCall { seq, call: AdminCall::UploadCheck { uploads } } => {
            let uploads = vec![*uploads.last()?; limits::JOB_UPLOADS_MAX];
            Some(Frame::AdminCall { seq, call: AdminCall::UploadCheck { uploads } })
        }
        Frame::AdminCall { seq, call: AdminCall::JobRetry { job, tasks: Some(ranges), after } } => {
            let tasks = Some(vec![*ranges.last()?; limits::TASK_RANGES_MAX]);
            Some(Frame::AdminCall { seq, call: AdminCall::JobRetry { job, tasks, after } })
        }
        Frame::AdminCall { seq, call: AdminCall::JobOutput { job, tasks: Some(_), from, after, follow, limit } } => {
            let tasks = Some(vec![(0, u32::MAX); limits::TASK_RANGES_MAX]);
            Some(Frame::AdminCall { seq, call: AdminCall::JobOutput { job, tasks, from, after, follow, limit } })
        }
        _ => None,
    });
    let mut read = 0;
    for frame in longest {
        let mut bytes = Vec::new();
        encode(&frame, &mut bytes);
        let piece = split(&bytes, usize::MAX).expect("a sound frame").expect("a whole frame");
        assert_eq!(decode(&piece.header, piece.rest), Ok(frame));
        read += 1;
    }
    assert_eq!(read, 6);
}

/// The line for people says what the header says.
#[test]
fn the_description_agrees_with_the_bytes() {
    for vector in golden::all() {
        let head = vector.bytes.first_chunk::<HEADER_LEN>().expect("a whole header");
        let header = Header::from_bytes(head).expect("our magic");
        let kind = Kind::from_number(header.kind).expect("a known type");
        let words: Vec<&str> = vector.frame.split(' ').take(4).collect();
        let expected = [
            kind.name().to_owned(),
            format!("seq={}", header.seq),
            format!("word={}", header.word),
            format!("flags=0x{:02x}", header.flags),
        ];
        assert_eq!(words, expected, "{}", vector.name);
        if matches!(kind, Kind::Error | Kind::Undelivered) {
            let code = Code::from_number(header.word).expect("a known code");
            assert!(vector.frame.contains(&format!("code={code}")), "{}", vector.name);
        }
    }
}

fn golden_by_name() -> BTreeMap<String, Vec<u8>> {
    golden::now().into_iter().map(|vector| (vector.name.to_owned(), vector.bytes)).collect()
}

/// Writes the vectors of admin calls and answers anew; the others stay as they are.
fn bless() {
    let mut file = golden::head();
    for vector in golden::now() {
        let frames = values::all();
        let value = frames.iter().find(|(name, _)| *name == vector.name).map(|(_, frame)| frame);
        let (frame, bytes) = match value {
            Some(value @ (Frame::AdminCall { .. } | Frame::AdminAnswer { .. })) => {
                let mut bytes = Vec::new();
                encode(value, &mut bytes);
                let (kind, _) = vector.frame.split_once(" map=").expect("admin frames hold a map");
                (format!("{kind} map={}", golden::packed(&mut &bytes[HEADER_LEN..])), bytes)
            }
            _ => (vector.frame.to_owned(), vector.bytes),
        };
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        file += &format!("\nname: {}\nframe: {frame}\nbytes: {}\n", vector.name, bytes.join(" "));
    }
    golden::write(&file);
}
