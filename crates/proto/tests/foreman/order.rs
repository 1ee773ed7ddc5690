//! Numbers, and the order of answers.

use turno_proto::foreman::{
    CloseReason, ConnectionNote, ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanKind,
    ForemanSettings, Outcome, RequestId, Stop, Worker, WorkerEndState, WorkerEvent,
};

use crate::script::{ForemanSeat, WorkerSeat, error, hello, id_of, job, ok, reset, task_of, ticket, update};

/// Both ends ask at the same time, and each answer finds its request. The lower number is answered at once, the greater
/// one waits for the answer to ours. Proves S4.9, S4.12, S4.19, S4.20, S4.66 and S4.69.
#[test]
fn requests_that_cross() {
    let mut worker = WorkerSeat::greeted(3);
    worker.hears(&job(1, &[1, 2]));
    assert_eq!(worker.ends(1).0, [update(2, 1)]);
    // JOB 3 is above UPDATE 2: it waits at the worker ...
    assert_eq!(worker.hears(&job(3, &[3])), (vec![], vec![]));
    let (frames, events) = worker.hears(&ok(2, 1, 2));
    assert_eq!(frames, [ok(3, 2, 1)]);
    assert_eq!(events, [WorkerEvent::Reported(id_of(1)), WorkerEvent::Start(vec![task_of(3)])]);

    // ... and UPDATE 2 is below JOB 3: it is answered by the foreman at once.
    let mut foreman = ForemanSeat::greeted(3);
    foreman.offers(1, &[1, 2]);
    foreman.hears(&ok(1, 2, 1));
    assert_eq!(foreman.offers(2, &[3]).0, [job(3, &[3])]);
    let events = foreman.hears(&update(2, 1)).1;
    assert_eq!(foreman.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(2, 1, 2)]);
    let events = foreman.hears(&ok(3, 2, 1)).1;
    assert!(matches!(events[0], ForemanEvent::Answered { outcome: Outcome::Ok(_), .. }), "{events:?}");
}

/// The foreman's side of the same: UPDATE above an unanswered JOB waits; a second request of the owner waits, too, and is
/// no error. Proves S4.17, S4.19, S4.24, S4.67 and S4.68.
#[test]
fn a_greater_number_waits_at_the_foreman() {
    let mut seat = ForemanSeat::greeted(3);
    seat.offers(1, &[1]);
    seat.hears(&ok(1, 1, 2));
    seat.offers(2, &[2]);
    seat.does(|foreman, now| foreman.stop(now, RequestId(3), Stop::from_word(1)));
    assert_eq!(seat.hears(&update(4, 1)), (vec![], vec![]));
    let events = seat.hears(&ok(3, 2, 1)).1;
    let update = ticket(&events);
    // The UPDATE is served before STOP is sent, and answered before it.
    assert_eq!(
        seat.answers(update, ForemanAnswer::Ok).0,
        [ok(4, 1, 2), ForemanFrame::Stop { seq: 5, stop: Stop::from_word(1) }]
    );
}

/// A new request has the smallest number of its parity above all that were sent or taken; gaps are fine; responses take
/// no number. Proves S4.11, S4.12, S4.13 and S4.14.
#[test]
fn numbers() {
    let mut seat = ForemanSeat::greeted(9);
    assert_eq!(seat.offers(1, &[1]).0, [job(1, &[1])], "above HELLO 0");
    seat.hears(&ok(1, 1, 8));
    assert_eq!(seat.offers(2, &[2]).0, [job(3, &[2])], "above JOB 1");
    seat.hears(&ok(3, 2, 7));
    let events = seat.hears(&update(100, 1)).1;
    seat.answers(ticket(&events), ForemanAnswer::Ok);
    assert_eq!(seat.offers(3, &[3]).0, [job(101, &[3])], "above UPDATE 100");

    let mut worker = WorkerSeat::greeted(9);
    assert_eq!(worker.hears(&job(3, &[1])).0, [ok(3, 1, 8)], "a foreman may begin with 3");
    assert_eq!(worker.ends(1).0, [update(4, 1)]);
    worker.hears(&ok(4, 0, 9));
    worker.hears(&job(77, &[2]));
    assert_eq!(worker.ends(2).0, [update(78, 2)]);
}

/// Wrong parity, a number that is not new, and RESET's own number in another request: `bad_seq` with the last number that
/// was taken; nothing is done. Proves S4.13, S4.15, S4.16, S4.23 and S4.45.
#[test]
fn numbers_that_are_refused() {
    let mut seat = WorkerSeat::greeted(9);
    seat.hears(&job(5, &[1]));
    for seq in [6, 5, 3, 1, u32::MAX] {
        let (frames, events) = seat.hears(&job(seq, &[2]));
        assert_eq!(frames, [error(seq, ErrorCode::BadSeq, 5)]);
        assert_eq!(events, [WorkerEvent::Note(ConnectionNote::BadSeq { seq, last: Some(5) })]);
    }
    assert_eq!(seat.hears(&job(7, &[2])).0, [ok(7, 2, 7)], "the next good one is taken");

    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    assert_eq!(seat.hears(&hello(1, 4)).0, [error(1, ErrorCode::BadSeq, 0)]);
    assert_eq!(seat.hears(&hello(u32::MAX - 1, 4)).0, [error(u32::MAX - 1, ErrorCode::BadSeq, 0)]);
    seat.greet(4);
    assert_eq!(seat.hears(&update(0, 1)).0, [error(0, ErrorCode::BadSeq, 0)]);
}

/// The queue of held requests is finite: what finds no place is refused with `overflow` and how many wait; nothing is
/// dropped without an answer; the held ones are served in order. Proves S4.21, S4.23, S4.34, S4.45 and
/// S4.65.
#[test]
fn overflow() {
    let mut seat = WorkerSeat::greeted_with(9, ForemanSettings { held_max: 2, ..ForemanSettings::default() });
    seat.hears(&job(1, &[1]));
    seat.ends(1);
    assert_eq!(seat.hears(&job(3, &[3])), (vec![], vec![]));
    assert_eq!(seat.hears(&job(5, &[5])), (vec![], vec![]));
    let (frames, events) = seat.hears(&job(7, &[7]));
    assert_eq!(frames, [error(7, ErrorCode::Overflow, 2)]);
    assert_eq!(events, [WorkerEvent::Note(ConnectionNote::Overflow { seq: 7 })]);
    assert_eq!(seat.hears(&ForemanFrame::Stop { seq: 9, stop: Stop::All }).0, [error(9, ErrorCode::Overflow, 2)]);
    assert_eq!(seat.hears(&ok(2, 0, 9)).0, [ok(3, 1, 8), ok(5, 2, 7)]);
    let mut resetting = WorkerSeat { end: seat.end.clone(), now: seat.now };
    assert_eq!(resetting.does(Worker::reset).0, [reset(10, 9)], "the highest number answered, not the last one");
    assert_eq!(seat.hears(&job(11, &[7])).0, [ok(11, 3, 6)]);
}

/// The default queue holds sixteen. Proves S4.23.
#[test]
fn sixteen_wait() {
    let mut seat = WorkerSeat::greeted(60_000);
    seat.hears(&job(1, &[1]));
    seat.ends(1);
    for number in 0..16 {
        assert_eq!(seat.hears(&job(3 + 2 * number, &[10 + number])).0, []);
    }
    assert_eq!(seat.hears(&job(35, &[99])).0, [error(35, ErrorCode::Overflow, 16)]);
}

/// The foreman serves one request at a time; a worker that does not wait for answers fills the queue, not the memory of
/// the owner. Proves S4.21.
#[test]
fn a_worker_that_does_not_wait() {
    let mut seat = ForemanSeat::greeted_with(9, ForemanSettings { held_max: 1, ..ForemanSettings::default() });
    let first = ticket(&seat.hears(&update(2, 1)).1);
    assert_eq!(seat.hears(&update(4, 2)), (vec![], vec![]));
    assert_eq!(seat.hears(&update(6, 3)).0, [error(6, ErrorCode::Overflow, 1)]);
    let (frames, events) = seat.answers(first, ForemanAnswer::Ok);
    assert_eq!(frames, [ok(2, 0, 9)]);
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(4, 0, 9)]);
}

/// A request refused with `overflow` is sent again with a new number: after 100 ms when nothing else is asked, or after a
/// good answer to another. Nothing overtakes it but STOP(immediate). Proves S4.22 and S4.61.
#[test]
fn sent_again() {
    let mut seat = ForemanSeat::greeted(9);
    seat.offers(1, &[1]);
    let (frames, events) = seat.hears(&error(1, ErrorCode::Overflow, 16));
    assert_eq!((frames, events), (vec![], vec![ForemanEvent::Note(ConnectionNote::Later { kind: ForemanKind::Job })]));
    assert_eq!(seat.end.next_deadline(), Some(seat.now.plus_millis(100)));
    seat.does(|foreman, now| foreman.cancel(now, RequestId(2), vec![id_of(1).into()]));
    assert_eq!(seat.waits(99), (vec![], vec![]), "the CANCEL of the same task stays behind");
    let mut hasty = ForemanSeat { end: seat.end.clone(), now: seat.now };
    assert_eq!(seat.waits(1).0, [job(3, &[1])]);

    let stop = |foreman: &mut Foreman, now| foreman.stop(now, RequestId(3), Stop::Immediate);
    assert_eq!(hasty.does(stop).0, [ForemanFrame::Stop { seq: 3, stop: Stop::Immediate }]);
    let frames = hasty.hears(&ok(3, 9, 9)).0;
    assert_eq!(
        frames,
        [ForemanFrame::Cancel { seq: 5, pairs: vec![id_of(1).into()] }],
        "what no longer fits is given back"
    );
}

/// OK and ERROR are never answered; those that answer nothing are logged, not obeyed. Proves S4.46.
#[test]
fn unsolicited() {
    let mut worker = WorkerSeat::greeted(2);
    let mut foreman = ForemanSeat::greeted(2);
    for (frame, kind) in [(ok(8, 0, 2), ForemanKind::Ok), (error(8, ErrorCode::BadSeq, 0), ForemanKind::Error)] {
        let note = ConnectionNote::Unsolicited { kind, seq: 8 };
        assert_eq!(worker.hears(&frame), (vec![], vec![WorkerEvent::Note(note)]));
        assert_eq!(foreman.hears(&frame), (vec![], vec![ForemanEvent::Note(note)]));
    }
    assert_eq!(worker.end.state(), WorkerEndState::Loop0);
}

/// `bad_seq`: RESET, and the refused request again after it; refused again, the connection ends. Proves S4.61.
#[test]
fn a_refused_number_leads_to_reset() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1]));
    seat.ends(1);
    assert_eq!(seat.hears(&error(2, ErrorCode::BadSeq, 0)).0, [reset(4, 1)]);
    seat.hears(&reset(4, 0));
    seat.hears(&ok(0, 0, 0));
    assert_eq!(seat.hears(&ok(0, 1, 1)).0, [update(2, 1)]);
    let events = seat.hears(&error(2, ErrorCode::BadSeq, 0)).1;
    assert_eq!(events[1], WorkerEvent::Close(CloseReason::BadSeqAgain));

    let mut seat = ForemanSeat::greeted(2);
    seat.offers(1, &[1]);
    assert_eq!(seat.hears(&error(1, ErrorCode::BadSeq, 0)).0, [reset(3, 0)]);
    assert_eq!(seat.hears(&reset(3, 0)).0, [ok(0, 0, 0)]);
    let events = seat.hears(&hello(0, 2)).1;
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(0, 0, 2), job(1, &[1])]);
    let events = seat.hears(&error(1, ErrorCode::BadSeq, 0)).1;
    assert_eq!(
        events[1..],
        [
            ForemanEvent::Close(CloseReason::BadSeqAgain),
            ForemanEvent::Answered { id: RequestId(1), kind: ForemanKind::Job, outcome: Outcome::NotSent },
        ]
    );
}

/// Each connection has its own numbers, and a new one begins at zero. Proves S4.11.
#[test]
fn a_new_connection_begins_at_zero() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(41, &[1]));
    seat.does(Worker::connect);
    let (frames, _) = seat.hears(&ok(0, 0, 0));
    assert!(matches!(frames[..], [ForemanFrame::Hello { seq: 0, .. }]), "{frames:?}");
    seat.hears(&ok(0, 1, 1));
    assert_eq!(seat.hears(&job(1, &[2])).0, [ok(1, 2, 0)]);
}
