//! RESET: beginning anew without losing anything.

use turno_proto::foreman::{
    CloseReason, ConnectionNote, ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanSettings,
    ForemanState, Hello, Running, Worker, WorkerEndState, WorkerEvent,
};

use crate::script::{ForemanSeat, JOB, WorkerSeat, error, hello, id_of, job, ok, reset, ticket, update};

const LOW: ForemanSettings = ForemanSettings { body_bytes_max: 1 << 20, held_max: 16, seq_max: 9 };

/// A side whose next number is its last one says RESET instead; the request comes again after HELLO. The last numbers
/// are even for the worker, odd for the foreman. Proves S4.16, S4.26, S4.31, S4.32 and S4.33.
#[test]
fn numbers_run_out() {
    let mut seat = WorkerSeat::greeted_with(9, LOW);
    seat.hears(&job(1, &[1, 2, 3, 4]));
    for (task, seq) in [(1, 2), (2, 4), (3, 6)] {
        assert_eq!(seat.ends(task).0, [update(seq, task)]);
        let nrun = 4 - u16::try_from(task).expect("small");
        seat.hears(&ok(seq, nrun, 9 - nrun));
    }
    assert_eq!(seat.ends(4).0, [reset(8, 1)]);
    assert_eq!(seat.hears(&reset(8, 6)), (vec![], vec![WorkerEvent::Note(ConnectionNote::Reset)]));
    assert_eq!(seat.end.state(), WorkerEndState::Init0);
    let (frames, _) = seat.hears(&ok(0, 0, 0));
    let [ForemanFrame::Hello { seq: 0, hello: Some(said) }] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(said.running.len(), 1, "what is not confirmed is listed");
    assert_eq!(seat.hears(&ok(0, 1, 8)).0, [update(2, 4)]);

    let mut seat = ForemanSeat::greeted_with(9, LOW);
    for (task, seq) in [(1, 1), (2, 3), (3, 5), (4, 7)] {
        let nrun = u16::try_from(task).expect("small");
        assert_eq!(seat.offers(u64::from(task), &[task]).0, [job(seq, &[task])]);
        seat.hears(&ok(seq, nrun, 9 - nrun));
    }
    assert_eq!(seat.offers(5, &[5]).0, [reset(9, 0)], "of what it was asked, it has answered HELLO 0 only");
    assert_eq!(seat.hears(&reset(9, 7)).0, [ok(0, 0, 0)], "the first OK again");
    let events = seat.hears(&hello(0, 9)).1;
    assert!(matches!(events[..], [ForemanEvent::Hello { again: true, .. }]), "{events:?}");
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(0, 0, 9), job(1, &[5])]);
}

/// With all numbers the last ones are 0xFFFFFFFE and 0xFFFFFFFF, and only RESET has them. Proves S4.16 and S4.26.
#[test]
fn the_last_numbers() {
    let mut seat = ForemanSeat::greeted(9);
    let events = seat.hears(&update(u32::MAX - 3, 1)).1;
    seat.answers(ticket(&events), ForemanAnswer::Ok);
    assert_eq!(seat.offers(1, &[1]).0, [job(u32::MAX - 2, &[1])]);
    seat.hears(&ok(u32::MAX - 2, 1, 8));
    assert_eq!(seat.offers(2, &[2]).0, [reset(u32::MAX, u32::MAX - 3)]);

    let mut seat = WorkerSeat::greeted(9);
    seat.hears(&job(u32::MAX - 2, &[1]));
    assert_eq!(seat.ends(1).0, [reset(u32::MAX - 1, u32::MAX - 2)]);
}

/// Either side may begin anew at any time; after that it asks nothing until it has. The answer has the same number, and
/// arg0 is the highest number the sender has answered. Proves S4.25, S4.27, S4.30 and S4.34.
#[test]
fn at_any_time() {
    let mut seat = ForemanSeat::greeted(9);
    let events = seat.hears(&update(2, 1)).1;
    seat.answers(ticket(&events), ForemanAnswer::Ok);
    assert_eq!(seat.does(Foreman::reset).0, [reset(3, 2)]);
    assert_eq!(seat.offers(1, &[1]).0, [], "no more requests");
    assert_eq!(seat.end.state(), ForemanState::Loop1);
    assert_eq!(
        seat.hears(&reset(5, 0)).0,
        [error(5, ErrorCode::BadSeq, 2)],
        "not the answer, and no number of a worker"
    );
    assert_eq!(seat.hears(&reset(3, 0)), (vec![ok(0, 0, 0)], vec![ForemanEvent::Note(ConnectionNote::Reset)]));

    let mut seat = WorkerSeat::greeted(9);
    seat.hears(&job(1, &[1]));
    assert_eq!(seat.hears(&reset(5, 0)).0, [reset(5, 1)]);
    assert_eq!(seat.ends(1).0, [], "first HELLO");
    assert_eq!(seat.end.state(), WorkerEndState::Init0);
    assert_eq!(seat.does(Worker::reset).0, [], "nothing to begin anew yet");
}

/// Who said RESET still answers what has a lower number, and drops without an answer what has a greater one: it comes again.
/// Proves S4.28, S4.29 and S4.69.
#[test]
fn what_crosses_a_reset() {
    let mut seat = WorkerSeat::greeted(9);
    seat.hears(&job(5, &[1]));
    assert_eq!(seat.does(Worker::reset).0, [reset(6, 5)]);
    let dropped = vec![WorkerEvent::Note(ConnectionNote::Dropped { seq: 7 })];
    assert_eq!(seat.hears(&job(7, &[2])), (vec![], dropped));
    assert_eq!(seat.end.counts().nrun, 1, "it was not started");

    let mut seat = ForemanSeat::greeted(9);
    seat.offers(1, &[1]);
    seat.hears(&ok(1, 1, 8));
    assert_eq!(seat.does(Foreman::reset).0, [reset(3, 0)]);
    let events = seat.hears(&update(2, 1)).1;
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(2, 0, 9)]);

    let mut seat = ForemanSeat::greeted(9);
    assert_eq!(seat.offers(1, &[1]).0, [job(1, &[1])]);
    // The worker said RESET 2 and had not seen JOB 1: it answers that, then the foreman answers RESET.
    assert_eq!(seat.hears(&reset(2, 0)).0, []);
    assert_eq!(seat.offers(2, &[2]).0, [], "who got RESET asks nothing more");
    assert_eq!(seat.hears(&ok(1, 1, 8)).0, [reset(2, 0), ok(0, 0, 0)]);
}

/// What the receiver of a RESET asked with a greater number is never answered: it goes out again after HELLO, before what
/// was asked later. Proves S4.29 and S4.33.
#[test]
fn a_dropped_request_goes_out_again() {
    let mut seat = ForemanSeat::greeted(9);
    seat.offers(1, &[1]);
    seat.hears(&ok(1, 1, 8));
    assert_eq!(seat.offers(2, &[2]).0, [job(3, &[2])]);
    seat.offers(3, &[3]);
    assert_eq!(seat.hears(&reset(2, 1)).0, [reset(2, 0), ok(0, 0, 0)], "JOB 3 is dropped");
    let running = vec![Running { task: 1, job: JOB, attempt: 0, procs: 1 }];
    let said = Hello { num_procs: 9, running, ..Hello::default() };
    let events = seat.hears(&ForemanFrame::Hello { seq: 0, hello: Some(said) }).1;
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(0, 1, 8), job(1, &[2])]);
    assert_eq!(seat.hears(&ok(1, 2, 7)).0, [job(3, &[3])]);
}

/// A request that the owner still has is answered before RESET is. Proves S4.28.
#[test]
fn the_owner_answers_first() {
    let mut seat = ForemanSeat::greeted(9);
    let update = ticket(&seat.hears(&update(2, 1)).1);
    assert_eq!(seat.hears(&reset(4, 0)).0, []);
    assert_eq!(seat.answers(update, ForemanAnswer::Ok).0, [ok(2, 0, 9), reset(4, 2), ok(0, 0, 0)]);
}

/// Two RESETs that cross: the lower number serves both. Proves S4.35.
#[test]
fn crossing_resets() {
    // The worker's is lower.
    let (mut worker, mut foreman) = (WorkerSeat::greeted(2), ForemanSeat::greeted(2));
    foreman.offers(1, &[1]);
    foreman.hears(&ok(1, 1, 1));
    assert_eq!((worker.does(Worker::reset).0, foreman.does(Foreman::reset).0), (vec![reset(2, 0)], vec![reset(3, 0)]));
    assert_eq!(worker.hears(&reset(3, 0)), (vec![], vec![WorkerEvent::Note(ConnectionNote::Dropped { seq: 3 })]));
    assert_eq!(foreman.hears(&reset(2, 0)).0, [reset(2, 0), ok(0, 0, 0)]);
    assert_eq!(worker.hears(&reset(2, 0)).1, [WorkerEvent::Note(ConnectionNote::Reset)]);
    assert_eq!(worker.hears(&ok(0, 0, 0)).0, [hello(0, 2)]);
    foreman.greet(2);

    // The foreman's is lower.
    let (mut worker, mut foreman) = (WorkerSeat::greeted(2), ForemanSeat::greeted(2));
    assert_eq!((worker.does(Worker::reset).0, foreman.does(Foreman::reset).0), (vec![reset(2, 0)], vec![reset(1, 0)]));
    assert_eq!(foreman.hears(&reset(2, 0)), (vec![], vec![ForemanEvent::Note(ConnectionNote::Dropped { seq: 2 })]));
    assert_eq!(worker.hears(&reset(1, 0)).0, [reset(1, 0)]);
    assert_eq!(foreman.hears(&reset(1, 0)).0, [ok(0, 0, 0)]);
    assert_eq!(worker.hears(&ok(0, 0, 0)).0, [hello(0, 2)]);
    assert_eq!(worker.waits(60_000), (vec![], vec![]), "the RESET that was dropped is not waited for");
}

/// Our RESET that another one serves is not waited for any more, also while the owner takes its time. Proves S4.35.
#[test]
fn a_reset_that_another_serves() {
    let mut seat = ForemanSeat::greeted(2);
    for seq in [1, 3] {
        seat.offers(1, &[]);
        seat.hears(&ok(seq, 0, 2));
    }
    assert_eq!(seat.does(Foreman::reset).0, [reset(5, 0)]);
    let update = ticket(&seat.hears(&update(2, 1)).1);
    assert_eq!(seat.hears(&reset(4, 0)).0, []);
    assert_eq!(seat.waits(60_000), (vec![], vec![]));
    assert_eq!(seat.answers(update, ForemanAnswer::Ok).0, [ok(2, 0, 2), reset(4, 2), ok(0, 0, 0)]);
}

/// Tasks run on, HELLO lists them; a RESET without an answer ends the connection after 30 s. Proves S4.36.
#[test]
fn tasks_run_on() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1]));
    seat.hears(&reset(3, 0));
    let (frames, _) = seat.hears(&ok(0, 0, 0));
    let [ForemanFrame::Hello { hello: Some(said), .. }] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!((said.num_procs, said.running[0].id()), (2, id_of(1)));

    let mut worker = WorkerSeat::greeted(2);
    worker.does(Worker::reset);
    assert_eq!(worker.waits(29_999).1, []);
    assert_eq!(worker.waits(1).1, [WorkerEvent::Close(CloseReason::ResetTimeout)]);
    let mut foreman = ForemanSeat::greeted(2);
    foreman.does(Foreman::reset);
    assert_eq!(foreman.waits(30_000).1, [ForemanEvent::Close(CloseReason::ResetTimeout)]);
}

/// A peer that does not know RESET refuses it: the connection ends, a new one begins at zero anyway.
#[test]
fn a_refused_reset() {
    let (mut worker, mut foreman) = (WorkerSeat::greeted(2), ForemanSeat::greeted(2));
    worker.does(Worker::reset);
    foreman.does(Foreman::reset);
    let code = ErrorCode::BadMessage;
    assert_eq!(worker.hears(&error(2, code, 0)).1, [WorkerEvent::Close(CloseReason::ResetRefused(code))]);
    assert_eq!(foreman.hears(&error(1, code, 0)).1, [ForemanEvent::Close(CloseReason::ResetRefused(code))]);
}
