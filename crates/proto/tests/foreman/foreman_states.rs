//! The foreman's table of states, row by row.

use turno_proto::foreman::{
    CloseReason, ConnectionNote, Counts, ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanKind,
    ForemanSettings, ForemanState, Hello, Outcome, RequestId, Running, StatusUpdate, Stop, TaskPair,
};

use crate::script::{ForemanSeat, JOB, error, hello, job, ok, ticket, update, update_of};

fn answered(id: u64, kind: ForemanKind, outcome: Outcome) -> ForemanEvent {
    ForemanEvent::Answered { id: RequestId(id), kind, outcome }
}

const fn counts(nrun: u16, nproc: u16) -> Counts {
    Counts { nrun, nproc }
}

fn stop(seat: &mut ForemanSeat, id: u64, arg0: u32) -> (Vec<ForemanFrame>, Vec<ForemanEvent>) {
    seat.does(|foreman, now| foreman.stop(now, RequestId(id), Stop::from_word(arg0)))
}

/// SV_INIT0: OK(0), to SV_INIT1; on HELLO: SV_INIT2; OK with the counts: SV_LOOP0. The first OK has number 0 and is
/// answered by nobody. Proves S4.48, S4.49, S4.70 and S4.81.
#[test]
fn the_greeting() {
    assert_eq!(Foreman::new(ForemanSettings::default()).state(), ForemanState::Init0);
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    assert_eq!(seat.end.state(), ForemanState::Init1);
    let running = vec![Running { task: 1, job: JOB, attempt: 2, procs: 3 }];
    let said = Hello { num_procs: 8, running, name: "w1".into(), id: "w1-1".into(), ..Hello::default() };
    let (frames, events) = seat.hears(&ForemanFrame::Hello { seq: 0, hello: Some(said.clone()) });
    let ticket = ticket(&events);
    assert_eq!((frames, events), (vec![], vec![ForemanEvent::Hello { ticket, hello: Some(said), again: false }]));
    assert_eq!((seat.end.state(), seat.end.counts()), (ForemanState::Init2, counts(3, 5)));
    assert_eq!(seat.answers(ticket, ForemanAnswer::Ok), (vec![ok(0, 3, 5)], vec![ForemanEvent::Ready { room: 5 }]));
    assert_eq!(seat.end.state(), ForemanState::Loop0);
    assert!(!seat.end.answer(seat.now, ticket, ForemanAnswer::Ok), "a ticket is good for one answer");
}

/// SV_INIT1 on OK(n): the old greeting, nothing runs; n may stand in either half. Proves S4.48, S4.70 and S4.81.
#[test]
fn the_old_greeting() {
    for frame in [ok(0, 0, 6), ok(0, 6, 0)] {
        let mut seat = ForemanSeat::foreman(ForemanSettings::default());
        let events = seat.hears(&frame).1;
        assert_eq!(seat.end.state(), ForemanState::Init2);
        assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(0, 0, 6)]);
        assert_eq!(seat.offers(1, &[1]).0, [job(1, &[1])]);
    }
}

/// HELLO without a body: nothing runs, and the processors are those that were registered, else none. Proves S4.37.
#[test]
fn a_hello_without_a_body() {
    for (registered, room) in [(None, 0), (Some(6), 6)] {
        let mut seat = ForemanSeat::foreman(ForemanSettings::default());
        let events = seat.hears(&ForemanFrame::Hello { seq: 0, hello: None }).1;
        registered.into_iter().for_each(|procs| seat.end.set_procs(procs));
        assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(0, 0, room)]);
        assert_eq!(seat.end.room(), room);
    }
}

/// A worker that says no HELLO is not waited for without end.
#[test]
fn no_hello() {
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    assert_eq!(seat.waits(9_999).1, []);
    assert_eq!(seat.waits(1).1, [ForemanEvent::Close(CloseReason::NoHello)]);
    assert_eq!((seat.end.state(), seat.end.next_deadline()), (ForemanState::Exit, None));
}

/// SV_LOOP0: an offer becomes JOB, SV_LOOP1 waits for its answer; the tasks count from the OK on. JOB_QUEUED tells of the
/// room again. Proves S4.41, S4.71, S4.72 and S4.81.
#[test]
fn an_offer() {
    let mut seat = ForemanSeat::greeted(3);
    assert_eq!(seat.does(Foreman::job_queued).1, [ForemanEvent::Ready { room: 3 }]);
    assert_eq!(seat.offers(1, &[1, 2]), (vec![job(1, &[1, 2])], vec![]));
    assert_eq!((seat.end.state(), seat.end.counts(), seat.end.room()), (ForemanState::Loop1, counts(0, 3), 0));
    assert_eq!(seat.does(Foreman::job_queued), (vec![], vec![]), "nothing can be offered now");
    let done = answered(1, ForemanKind::Job, Outcome::Ok(counts(2, 1)));
    assert_eq!(seat.hears(&ok(1, 2, 1)), (vec![], vec![done, ForemanEvent::Ready { room: 1 }]));
    assert_eq!((seat.end.state(), seat.end.counts()), (ForemanState::Loop0, counts(2, 1)));
    assert_eq!(
        seat.offers(2, &[3, 4]),
        (vec![], vec![answered(2, ForemanKind::Job, Outcome::NotSent), ForemanEvent::Ready { room: 1 },]),
        "never more than there is room for"
    );
}

/// SV_LOOP1 on UPDATE: SV_LOOP2 until the owner has recorded it, then OK with the counts and back. Proves S4.62, S4.73
/// and S4.81.
#[test]
fn an_update() {
    let mut seat = ForemanSeat::greeted(1);
    seat.offers(1, &[1]);
    seat.hears(&ok(1, 1, 0));
    assert_eq!(seat.end.state(), ForemanState::Loop1, "no room");
    let (frames, events) = seat.hears(&update(2, 1));
    let ticket = ticket(&events);
    assert_eq!(events, [ForemanEvent::Update { ticket, update: update_of(1), known: true }]);
    assert_eq!((frames, seat.end.state()), (vec![], ForemanState::Loop2));
    assert_eq!(seat.offers(2, &[2]), (vec![], vec![]), "a request is answered before a new one is made");
    assert_eq!(seat.answers(ticket, ForemanAnswer::Ok), (vec![ok(2, 0, 1), job(3, &[2])], vec![]));
}

/// An UPDATE for a task or an attempt that the worker does not have frees nothing. With `overflow` the owner may ask for
/// it again later. Proves S4.22 and S4.62.
#[test]
fn an_update_that_frees_nothing() {
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    let running = vec![Running { task: 1, job: JOB, attempt: 2, procs: 1 }];
    let said = Hello { num_procs: 2, running, ..Hello::default() };
    let events = seat.hears(&ForemanFrame::Hello { seq: 0, hello: Some(said) }).1;
    seat.answers(ticket(&events), ForemanAnswer::Ok);
    for (seq, task, attempt, known) in [(2, 9, 2, false), (4, 1, 1, false), (6, 1, 2, true), (8, 1, 2, false)] {
        let mut update = update_of(task);
        update.attempt = attempt;
        let events = seat.hears(&ForemanFrame::Update { seq, update: update.clone() }).1;
        let ticket = ticket(&events);
        assert_eq!(events, [ForemanEvent::Update { ticket, update, known }]);
        let refusal = ForemanAnswer::Refuse(ErrorCode::Overflow);
        assert_eq!(seat.answers(ticket, refusal).0, [error(seq, ErrorCode::Overflow, 0)]);
    }
    assert_eq!(seat.end.counts(), counts(0, 2));
}

/// Who does not count attempts means the one there is: an old worker's UPDATE frees what ours would. Proves S4.62.
#[test]
fn an_update_without_an_attempt() {
    for (listed, told) in [(2, 0), (0, 2)] {
        let mut seat = ForemanSeat::foreman(ForemanSettings::default());
        let running = vec![Running { task: 1, job: JOB, attempt: listed, procs: 1 }];
        let said = Hello { num_procs: 2, running, ..Hello::default() };
        let events = seat.hears(&ForemanFrame::Hello { seq: 0, hello: Some(said) }).1;
        seat.answers(ticket(&events), ForemanAnswer::Ok);
        let update = StatusUpdate { attempt: told, ..update_of(1) };
        let events = seat.hears(&ForemanFrame::Update { seq: 2, update }).1;
        assert!(matches!(events[..], [ForemanEvent::Update { known: true, .. }]), "{events:?}");
    }
}

/// SV_LOOP1 on STOP_REQ(n) and on STOP_IMMED: STOP; nothing is offered before its OK, which lowers what the worker has.
/// STOP 0 is all. Proves S4.44, S4.74, S4.75 and S4.81.
#[test]
fn stops() {
    for (arg0, left) in [(1, 2), (3, 0), (99, 0), (0, 0), (u32::MAX, 0)] {
        let mut seat = ForemanSeat::greeted(3);
        let frame = ForemanFrame::Stop { seq: 1, stop: Stop::from_word(arg0) };
        assert_eq!(stop(&mut seat, 1, arg0), (vec![frame], vec![]));
        assert_eq!(seat.end.room(), 0, "not before the answer");
        let events = seat.hears(&ok(1, 0, left)).1;
        assert_eq!(events[0], answered(1, ForemanKind::Stop, Outcome::Ok(counts(0, left))));
        assert_eq!((seat.end.counts(), seat.end.room()), (counts(0, left), left));
    }
}

/// STOP(immediate) goes before all else that waits. Proves S4.75.
#[test]
fn stop_at_once_goes_first() {
    let mut seat = ForemanSeat::greeted(3);
    seat.offers(1, &[1]);
    stop(&mut seat, 2, 1);
    stop(&mut seat, 3, u32::MAX);
    assert_eq!(seat.hears(&ok(1, 1, 2)).0, [ForemanFrame::Stop { seq: 3, stop: Stop::Immediate }]);
    assert_eq!(seat.hears(&ok(3, 0, 0)).0, [ForemanFrame::Stop { seq: 5, stop: Stop::from_word(1) }]);
}

/// SV_LOOP1 on DISCONNECT: SV_EXIT. What was asked and not answered may have been done; what was not sent was not. Proves
/// S4.81.
#[test]
fn a_disconnect() {
    let mut seat = ForemanSeat::greeted(3);
    seat.offers(1, &[1]);
    stop(&mut seat, 2, 1);
    let events = seat.does(|foreman, _| foreman.disconnect()).1;
    assert_eq!(
        events,
        [answered(1, ForemanKind::Job, Outcome::Unknown), answered(2, ForemanKind::Stop, Outcome::NotSent)]
    );
    assert_eq!(seat.end.state(), ForemanState::Exit);
    assert_eq!(seat.offers(3, &[1]), (vec![], vec![answered(3, ForemanKind::Job, Outcome::NotSent)]));
    assert_eq!(seat.does(|foreman, _| foreman.disconnect()), (vec![], vec![]));
}

/// CANCEL: OK means that the tasks are being stopped, each is free with its UPDATE; `no_such_job` that they have ended.
/// Proves S4.43, S4.55, S4.56 and S4.61.
#[test]
fn a_cancel() {
    let mut seat = ForemanSeat::greeted(3);
    seat.offers(1, &[1, 2]);
    seat.hears(&ok(1, 2, 1));
    let pairs = vec![TaskPair { job: JOB, task: Some(1) }, TaskPair { job: 9, task: None }];
    let cancel = |seat: &mut ForemanSeat, id| {
        let pairs = pairs.clone();
        seat.does(|foreman, now| foreman.cancel(now, RequestId(id), pairs)).0
    };
    assert_eq!(cancel(&mut seat, 2), [ForemanFrame::Cancel { seq: 3, pairs: pairs.clone() }]);
    let events = seat.hears(&ok(3, 2, 1)).1;
    assert_eq!(events[0], answered(2, ForemanKind::Cancel, Outcome::Ok(counts(2, 1))));
    assert_eq!(seat.end.counts(), counts(2, 1), "it still runs");
    assert_eq!(cancel(&mut seat, 3), [ForemanFrame::Cancel { seq: 5, pairs: pairs.clone() }]);
    let events = seat.hears(&error(5, ErrorCode::NoSuchJob, 0)).1;
    let refused = Outcome::Refused { code: ErrorCode::NoSuchJob, counts: counts(2, 1) };
    assert_eq!(events[0], answered(3, ForemanKind::Cancel, refused));
    let events = seat.hears(&update(6, 1)).1;
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(6, 1, 2)]);
}

/// `no_procs`: the tasks go back, and the worker's counts win. Proves S4.45, S4.50, S4.61 and S4.71.
#[test]
fn no_procs() {
    let mut seat = ForemanSeat::greeted(3);
    seat.offers(1, &[1, 2, 3]);
    let (code, theirs) = (ErrorCode::NoProcs, counts(1, 2));
    let events = seat.hears(&error(1, code, theirs.to_word())).1;
    assert_eq!(
        events,
        [
            ForemanEvent::Note(ConnectionNote::Mismatch { ours: counts(0, 3), theirs }),
            answered(1, ForemanKind::Job, Outcome::Refused { code, counts: theirs }),
            ForemanEvent::Ready { room: 2 },
        ]
    );
}

/// A worker that refuses what it has room for is offered nothing for a second. Proves S4.61.
#[test]
fn a_worker_that_refuses_what_it_has_room_for() {
    let refusals =
        [(ErrorCode::NoProcs, counts(0, 3).to_word()), (ErrorCode::BadMessage, 0), (ErrorCode::Other(77), 0)];
    for (code, arg0) in refusals {
        let mut seat = ForemanSeat::greeted(3);
        seat.offers(1, &[1]);
        let events = seat.hears(&error(1, code, arg0)).1;
        assert_eq!(
            events,
            [
                ForemanEvent::Note(ConnectionNote::Refused { kind: ForemanKind::Job, code }),
                answered(1, ForemanKind::Job, Outcome::Refused { code, counts: counts(0, 3) }),
            ]
        );
        assert_eq!((seat.end.room(), seat.end.state()), (0, ForemanState::Loop1));
        assert_eq!(seat.offers(2, &[1]), (vec![], vec![answered(2, ForemanKind::Job, Outcome::NotSent)]));
        assert_eq!(seat.waits(999), (vec![], vec![]));
        assert_eq!(seat.waits(1), (vec![], vec![ForemanEvent::Ready { room: 3 }]));
        assert_eq!(seat.offers(3, &[1]).0, [job(3, &[1])]);
    }
}

/// A HELLO that crosses a JOB or a STOP was written before those were done: they are added to it. Proves S4.50.
#[test]
fn a_hello_that_crosses_a_job_or_a_stop() {
    let mut seat = ForemanSeat::greeted(3);
    seat.offers(1, &[1]);
    assert_eq!(seat.hears(&hello(2, 3)), (vec![], vec![]), "a greater number waits");
    let events = seat.hears(&ok(1, 1, 2)).1;
    let [ForemanEvent::Answered { .. }, ForemanEvent::Hello { ticket: first, hello: Some(said), again: true }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((said.num_procs, said.running.len()), (3, 1));
    assert_eq!(seat.answers(*first, ForemanAnswer::Ok).0, [ok(2, 1, 2)]);
    stop(&mut seat, 2, 2);
    let running = vec![Running { task: 1, job: JOB, attempt: 0, procs: 1 }];
    seat.hears(&ForemanFrame::Hello { seq: 4, hello: Some(Hello { num_procs: 3, running, ..Hello::default() }) });
    let events = seat.hears(&ok(3, 1, 0)).1;
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::Ok).0, [ok(4, 1, 0)]);
}

/// An UPDATE before HELLO is not taken in: the worker is asked for HELLO. The owner may do the same later. Proves S4.40.
#[test]
fn a_worker_nobody_knows() {
    let unknown = |seq| ForemanFrame::Ok { seq, counts: Counts::SEND_HELLO };
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    let (frames, events) = seat.hears(&update(0, 1));
    assert_eq!(frames, [unknown(0)]);
    assert_eq!(events, [ForemanEvent::Note(ConnectionNote::BadType { kind: ForemanKind::Update, seq: 0 })]);
    assert_eq!(seat.end.state(), ForemanState::Init1);
    let events = seat.hears(&hello(2, 2)).1;
    seat.answers(ticket(&events), ForemanAnswer::Ok);
    let events = seat.hears(&update(4, 1)).1;
    assert_eq!(seat.answers(ticket(&events), ForemanAnswer::SendHello).0, [unknown(4)]);
}

/// A HELLO that the owner refuses leaves the foreman where it was.
#[test]
fn a_refused_hello() {
    let mut seat = ForemanSeat::foreman(ForemanSettings::default());
    let events = seat.hears(&hello(0, 2)).1;
    let refusal = ForemanAnswer::Refuse(ErrorCode::BadMessage);
    assert_eq!(seat.answers(ticket(&events), refusal).0, [error(0, ErrorCode::BadMessage, 0)]);
    assert_eq!(seat.end.state(), ForemanState::Init1);
}
