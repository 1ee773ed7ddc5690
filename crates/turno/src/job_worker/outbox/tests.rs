//! The outbox before a broker that the test plays.

mod driver;
mod model;

use turno_proto::model::archive::OutputStream::{Stderr, Stdout};
use turno_proto::model::archive::{OutputPiece, OutputStream};
use turno_proto::model::job::JobId;
use turno_proto::model::{Code, Mono, limits};

use super::attempt::AttemptId;
use super::core::Core;
use super::event::{CallId, Event, LossReason, Lost, OutboxAnswer, Ticket};

const JOB: JobId = JobId(7);

fn ms(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

const fn attempt(task: u32) -> AttemptId {
    AttemptId { job: JOB, task, attempt: 1 }
}

fn kept(per_task: u64) -> OutboxAnswer {
    OutboxAnswer::Kept { per_task, follow: Vec::new(), refused: Vec::new() }
}

/// A core whose first question was answered at zero.
fn told(per_task: u64) -> Core {
    let mut core = Core::new(ms(0));
    let (id, pieces) = core.poll_call(ms(0)).expect("the first question");
    assert_eq!(pieces, []);
    core.handle_answer(ms(0), id, kept(per_task));
    core
}

/// The pieces of a call, in short.
fn shape(pieces: &[OutputPiece]) -> Vec<(u32, OutputStream, u64, bool, String)> {
    let text = |piece: &OutputPiece| String::from_utf8(piece.bytes.to_vec()).expect("text");
    pieces.iter().map(|piece| (piece.task, piece.stream, piece.at, piece.live, text(piece))).collect()
}

fn part(task: u32, stream: OutputStream, at: u64, text: &str) -> (u32, OutputStream, u64, bool, String) {
    (task, stream, at, false, text.to_owned())
}

#[track_caller]
fn call(core: &mut Core, now: Mono) -> (CallId, Vec<OutputPiece>) {
    let call = core.poll_call(now).expect("a call is due");
    core.check();
    call
}

fn events(core: &mut Core) -> Vec<Event> {
    core.check();
    std::iter::from_fn(|| core.poll_event()).collect()
}

#[test]
fn what_tasks_write_goes_out_together_after_a_moment() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    assert!(core.wrote(ms(10), one, Stdout, b"a"));
    assert!(core.wrote(ms(20), two, Stderr, b"x"));
    assert!(core.wrote(ms(30), one, Stdout, b"b"));
    assert!(core.wrote(ms(40), one, Stderr, b"c"));
    core.check();
    assert_eq!((core.poll_call(ms(59)), core.next_deadline()), (None, Some(ms(60))));
    let (id, pieces) = call(&mut core, ms(60));
    assert_eq!(shape(&pieces), [part(1, Stdout, 0, "ab"), part(1, Stderr, 2, "c"), part(2, Stderr, 0, "x")]);
    core.handle_answer(ms(61), id, kept(1_000));
    assert_eq!((events(&mut core), core.next_deadline(), core.is_quiet()), (vec![], None, true));
}

#[test]
fn an_end_does_not_wait_and_is_told_when_all_is_kept() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    core.end(ms(5), two);
    assert_eq!(events(&mut core), [Event::Done(two)], "nothing was written");
    core.wrote(ms(10), one, Stdout, b"a");
    core.end(ms(10), one);
    let (id, pieces) = call(&mut core, ms(10));
    assert_eq!((shape(&pieces), events(&mut core)), (vec![part(1, Stdout, 0, "a")], vec![]));
    core.handle_answer(ms(11), id, kept(1_000));
    assert_eq!(events(&mut core), [Event::Done(one)]);
    assert_eq!((core.held_bytes(), core.next_deadline(), core.lost()), (0, None, Lost::default()));
}

#[test]
fn the_beginning_and_the_end_are_kept_and_what_is_between_is_left_out() {
    let mut core = told(8);
    let one = core.open(attempt(1));
    assert!(core.wrote(ms(0), one, Stdout, b"abcdef"), "once the beginning is full nobody waits");
    let (id, pieces) = call(&mut core, ms(50));
    assert_eq!(shape(&pieces), [part(1, Stdout, 0, "abcd")]);
    assert!(core.wrote(ms(51), one, Stderr, b"012345"));
    core.handle_answer(ms(52), id, kept(8));
    assert_eq!(core.poll_call(ms(1_000)), None, "nobody looks at it");
    core.wrote(ms(1_000), one, Stdout, b"z");
    core.end(ms(1_001), one);
    let (id, pieces) = call(&mut core, ms(1_001));
    assert_eq!(shape(&pieces), [part(1, Stderr, 9, "345"), part(1, Stdout, 12, "z")]);
    core.handle_answer(ms(1_002), id, kept(8));
    assert_eq!(events(&mut core), [Event::Done(one)]);
    assert_eq!(core.lost(), Lost::default(), "what is left out by design is not lost");
}

#[test]
fn somebody_who_looks_sees_what_would_be_left_out() {
    let mut core = told(8);
    let one = core.open(attempt(1));
    core.wrote(ms(0), one, Stdout, b"abcd");
    let (id, _) = call(&mut core, ms(50));
    core.handle_answer(ms(51), id, kept(8));
    core.wrote(ms(60), one, Stdout, b"ef");
    assert_eq!(core.next_deadline(), Some(ms(1_050)), "whether somebody looks is asked each second");
    let (id, pieces) = call(&mut core, ms(1_050));
    assert_eq!(pieces, []);
    let look = OutboxAnswer::Kept { per_task: 8, follow: vec![(JOB, 1)], refused: vec![] };
    core.handle_answer(ms(1_051), id, look.clone());
    let (id, pieces) = call(&mut core, ms(1_051));
    assert_eq!(shape(&pieces), [(1, Stdout, 4, true, "ef".to_owned())]);
    core.handle_answer(ms(1_052), id, look.clone());
    core.wrote(ms(1_060), one, Stdout, b"gh");
    assert_eq!((core.poll_call(ms(1_250)), core.next_deadline()), (None, Some(ms(1_251))));
    let (id, pieces) = call(&mut core, ms(1_251));
    assert_eq!(shape(&pieces), [(1, Stdout, 6, true, "gh".to_owned())]);
    core.end(ms(1_252), one);
    assert_eq!(core.poll_call(ms(1_252)), None, "pieces of an attempt go out in order");
    core.handle_answer(ms(1_253), id, look);
    let (id, pieces) = call(&mut core, ms(1_253));
    assert_eq!(shape(&pieces), [part(1, Stdout, 4, "efgh")], "the end is kept though it was seen before");
    core.handle_answer(ms(1_254), id, kept(8));
    assert_eq!((events(&mut core), core.next_deadline()), (vec![Event::Done(one)], None));
}

#[test]
fn what_was_not_taken_is_sent_again_as_it_was_and_nothing_else_before_it() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    core.wrote(ms(0), one, Stdout, b"a");
    let (id, first) = call(&mut core, ms(50));
    core.wrote(ms(51), one, Stdout, b"b");
    core.wrote(ms(51), two, Stdout, b"x");
    core.end(ms(52), two);
    core.handle_answer(ms(60), id, OutboxAnswer::Again);
    core.check();
    assert_eq!((core.poll_call(ms(159)), core.next_deadline()), (None, Some(ms(160))));
    assert_eq!(call(&mut core, ms(160)), (id, first.clone()));
    core.handle_answer(ms(161), id, OutboxAnswer::Again);
    assert_eq!(core.next_deadline(), Some(ms(361)), "twice as long");
    assert_eq!(call(&mut core, ms(400)), (id, first));
    core.handle_answer(ms(401), id, kept(1_000));
    let (id, pieces) = call(&mut core, ms(401));
    assert_eq!(shape(&pieces), [part(2, Stdout, 0, "x"), part(1, Stdout, 1, "b")]);
    core.handle_answer(ms(402), id, kept(1_000));
    assert_eq!(events(&mut core), [Event::Done(two)]);
}

#[test]
fn a_task_waits_for_a_beginning_that_is_too_large_to_hold_but_not_for_ever() {
    let mut core = told(1 << 30);
    let one = core.open(attempt(1));
    let block = vec![7; limits::OUTBOX_HEAD_BYTES_MAX];
    assert!(!core.wrote(ms(0), one, Stdout, &block));
    let (id, _) = call(&mut core, ms(0));
    assert_eq!(events(&mut core), [Event::Room(one)], "half of it is under way");
    assert!(!core.wrote(ms(1), one, Stdout, &block));
    core.handle_answer(ms(2), id, OutboxAnswer::Again);
    core.handle_tick(ms(29_999));
    assert_eq!(events(&mut core), []);
    core.handle_tick(ms(30_001));
    assert_eq!(events(&mut core), [Event::Room(one)], "the rest is left out");
    assert!(core.wrote(ms(30_002), one, Stdout, &block));
    core.check();
    assert!(core.held_bytes() <= 3 * block.len());
    core.end(ms(30_003), one);
    let mut bytes = Vec::new();
    for at in 0.. {
        let Some((id, pieces)) = core.poll_call(ms(40_000 + at)) else { break };
        bytes.extend(pieces.iter().map(|piece| (piece.at, piece.bytes.len())));
        core.handle_answer(ms(40_000 + at), id, kept(1 << 30));
    }
    let quarter = limits::PIECE_BYTES_MAX;
    let ats = [0, 1, 2, 3, 4, 5].map(|at| (at * quarter as u64, quarter));
    assert_eq!((bytes, events(&mut core)), (ats.to_vec(), vec![Event::Done(one)]));
}

#[test]
fn a_broker_that_is_silent_for_too_long_loses_what_has_ended_and_nothing_else() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    core.wrote(ms(0), one, Stdout, b"abc");
    core.wrote(ms(0), two, Stdout, b"x");
    let (id, _) = call(&mut core, ms(50));
    core.wrote(ms(60), one, Stdout, b"de");
    core.end(ms(100), one);
    core.handle_answer(ms(200), id, OutboxAnswer::Again);
    core.handle_tick(ms(30_099));
    assert_eq!(events(&mut core), []);
    core.handle_tick(ms(30_100));
    let lost =
        Event::Lost { ticket: one, id: attempt(1), bytes: 5, why: LossReason::Silence, ended: true, first: true };
    assert_eq!((events(&mut core), core.lost()), (vec![lost], Lost { tasks: 1, bytes: 5 }));
    let (id, pieces) = call(&mut core, ms(30_200));
    assert_eq!(shape(&pieces), [part(2, Stdout, 0, "x")]);
    core.handle_answer(ms(30_201), id, kept(1_000));
    core.end(ms(30_202), two);
    assert_eq!(events(&mut core), [Event::Done(two)]);
}

#[test]
fn a_broker_that_answers_others_is_waited_for_within_reason() {
    let mut core = told(1_000);
    let one = core.open(attempt(1));
    core.wrote(ms(0), one, Stdout, b"abc");
    core.end(ms(0), one);
    let (id, _) = call(&mut core, ms(0));
    let two = core.open(attempt(2));
    for round in 1..=20 {
        core.wrote(ms(round * 20_000), two, Stdout, b"x");
        let (other, _) = call(&mut core, ms(round * 20_000 + 50));
        assert_ne!(other, id);
        core.handle_answer(ms(round * 20_000 + 60), other, kept(1_000));
        core.handle_tick(ms(round * 20_000 + 60));
        let gone = !events(&mut core).is_empty();
        assert_eq!(gone, round == 15, "after {round} rounds");
    }
}

#[test]
fn what_the_broker_does_not_want_is_counted_and_stops_nobody() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    core.wrote(ms(0), one, Stdout, b"abc");
    core.wrote(ms(0), two, Stdout, b"x");
    let (id, _) = call(&mut core, ms(50));
    let refused = vec![(JOB, 1, 1)];
    core.handle_answer(ms(51), id, OutboxAnswer::Kept { per_task: 1_000, follow: vec![], refused });
    let lost =
        Event::Lost { ticket: one, id: attempt(1), bytes: 3, why: LossReason::NotOurs, ended: false, first: true };
    assert_eq!(events(&mut core), [lost]);
    assert!(core.wrote(ms(52), one, Stdout, &vec![1; 1 << 20]));
    assert_eq!((core.held_bytes(), core.poll_call(ms(2_000))), (0, None));
    core.end(ms(2_000), one);
    assert_eq!(events(&mut core), [Event::Done(one)]);
    core.wrote(ms(2_000), two, Stdout, b"yz");
    let (id, _) = call(&mut core, ms(2_050));
    core.handle_answer(ms(2_051), id, OutboxAnswer::Refused(Code::OverDisk));
    let lost = Event::Lost {
        ticket: two,
        id: attempt(2),
        bytes: 2,
        why: LossReason::Said(Code::OverDisk),
        ended: false,
        first: true,
    };
    assert_eq!(events(&mut core), [lost]);
    core.wrote(ms(2_052), two, Stdout, b"w");
    core.end(ms(2_053), two);
    let (id, pieces) = call(&mut core, ms(2_053));
    assert_eq!(shape(&pieces), [part(2, Stdout, 3, "w")]);
    core.handle_answer(ms(2_054), id, kept(1_000));
    assert_eq!((events(&mut core), core.lost()), (vec![Event::Done(two)], Lost { tasks: 2, bytes: 5 }));
}

#[test]
fn an_attempt_that_nobody_cares_for_leaves_nothing_behind() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    core.wrote(ms(0), one, Stdout, b"abc");
    core.wrote(ms(0), two, Stdout, b"x");
    let (id, _) = call(&mut core, ms(50));
    core.forget(one);
    core.handle_answer(ms(60), id, OutboxAnswer::Again);
    let (id, pieces) = call(&mut core, ms(160));
    assert_eq!(shape(&pieces), [part(2, Stdout, 0, "x")]);
    core.handle_answer(ms(161), id, OutboxAnswer::Again);
    core.forget(two);
    assert_eq!((core.held_bytes(), core.next_deadline(), events(&mut core)), (0, None, vec![]));
    assert!(core.wrote(ms(200), one, Stdout, b"late"));
    core.end(ms(200), one);
    assert_eq!((core.held_bytes(), core.lost(), events(&mut core)), (0, Lost::default(), vec![]));
}

#[test]
fn a_call_has_as_many_pieces_and_bytes_as_the_broker_takes() {
    let mut core = told(limits::OUTPUT_PER_TASK_BYTES);
    let tickets: Vec<Ticket> = (1..=40).map(|task| core.open(attempt(task))).collect();
    for (at, ticket) in (0..).zip(&tickets) {
        core.wrote(ms(at), *ticket, Stdout, b"line\n");
    }
    let counts: Vec<usize> = (0..4).filter_map(|_| core.poll_call(ms(100))).map(|(_, pieces)| pieces.len()).collect();
    assert_eq!(counts, [16, 16, 8]);
    let mut core = told(limits::OUTPUT_PER_TASK_BYTES);
    for task in 1..=5 {
        let ticket = core.open(attempt(task));
        core.wrote(ms(0), ticket, Stdout, &vec![1; 300_000]);
        core.check();
    }
    let calls: Vec<Vec<OutputPiece>> = std::iter::from_fn(|| core.poll_call(ms(0))).map(|(_, pieces)| pieces).collect();
    let tasks: Vec<u32> = calls.iter().flatten().map(|piece| piece.task).collect();
    assert_eq!(tasks, [1, 2, 3, 4], "four calls are under way, each of another task");
    core.check();
}

#[test]
fn a_worker_that_ends_tells_what_it_could_not_hand_in() {
    let mut core = told(1_000);
    let (one, two) = (core.open(attempt(1)), core.open(attempt(2)));
    core.wrote(ms(0), one, Stdout, b"abc");
    core.end(ms(0), one);
    let _ = call(&mut core, ms(0));
    core.wrote(ms(0), two, Stdout, b"x");
    assert!(!core.is_quiet());
    assert_eq!(core.close(), Lost { tasks: 2, bytes: 4 });
}
