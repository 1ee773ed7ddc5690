//! The worker's table of states, row by row.

use turno_proto::foreman::{
    CloseReason, ConnectionNote, Counts, ErrorCode, ForemanFrame, ForemanSettings, Hello, Running, Stop, Task,
    TaskPair, Worker, WorkerEndState, WorkerEvent,
};

use crate::script::{JOB, WorkerSeat, error, hello, id_of, job, ok, task_of, update, update_of};

fn stop(seq: u32, arg0: u32) -> ForemanFrame {
    ForemanFrame::Stop { seq, stop: Stop::from_word(arg0) }
}

fn cancel_of(seq: u32, pairs: &[Option<u32>]) -> ForemanFrame {
    ForemanFrame::Cancel { seq, pairs: pairs.iter().map(|task| TaskPair { job: JOB, task: *task }).collect() }
}

fn no_procs(seq: u32, nrun: u16, nproc: u16) -> ForemanFrame {
    error(seq, ErrorCode::NoProcs, Counts { nrun, nproc }.to_word())
}

/// CL_INIT0 on OK(0): HELLO, to CL_INIT1; on OK: to CL_LOOP0. HELLO is the first request and has number 0. Proves
/// S4.11, S4.47, S4.48, S4.49 and S4.78.
#[test]
fn the_greeting() {
    let mut seat = WorkerSeat::worker(4, ForemanSettings::default());
    assert_eq!((seat.end.state(), seat.end.counts()), (WorkerEndState::Init0, Counts { nrun: 0, nproc: 4 }));
    assert_eq!(seat.hears(&ok(0, 0, 0)), (vec![hello(0, 4)], vec![]));
    assert_eq!(seat.end.state(), WorkerEndState::Init1);
    assert_eq!(seat.hears(&ok(0, 0, 4)), (vec![], vec![WorkerEvent::Greeted]));
    assert_eq!((seat.end.state(), seat.end.max_procs()), (WorkerEndState::Loop0, 4));
}

/// A foreman that says nothing first is told HELLO after five seconds; its OK may come late. Proves S4.49.
#[test]
fn a_foreman_without_a_first_word() {
    let mut seat = WorkerSeat::worker(4, ForemanSettings::default());
    assert_eq!(seat.waits(4_999), (vec![], vec![]));
    assert_eq!(seat.waits(1), (vec![hello(0, 4)], vec![]));
    assert_eq!(seat.hears(&ok(0, 0, 0)), (vec![], vec![]), "the first OK, late: it answers nothing");
    assert_eq!(seat.end.state(), WorkerEndState::Init1);
    assert_eq!(seat.hears(&ok(0, 0, 4)), (vec![], vec![WorkerEvent::Greeted]));
}

/// CL_LOOP0 on JOB: started if there is room, and room for exactly all is room enough. Proves S4.52, S4.54 and S4.41.
#[test]
fn a_job_takes_processors() {
    let mut seat = WorkerSeat::greeted(3);
    let start = |tasks: &[u32]| vec![WorkerEvent::Start(tasks.iter().map(|task| task_of(*task)).collect())];
    assert_eq!(seat.hears(&job(1, &[1])), (vec![ok(1, 1, 2)], start(&[1])));
    assert_eq!(seat.hears(&job(3, &[2, 3])), (vec![ok(3, 3, 0)], start(&[2, 3])), "the last processor works too");
    assert_eq!(seat.hears(&job(5, &[4])), (vec![no_procs(5, 3, 0)], vec![]));
    assert_eq!(seat.end.state(), WorkerEndState::Loop0);
}

/// All of a list, or nothing of it; the sum of the processors decides; an empty list changes nothing; a task that runs
/// already, or is named twice, makes the whole list bad. Proves S4.53.
#[test]
fn all_of_a_job_or_nothing() {
    let mut seat = WorkerSeat::greeted(4);
    let wide = Task { procs: 3, ..task_of(1) };
    let both = ForemanFrame::Job { seq: 1, tasks: vec![wide.clone(), Task { procs: 2, ..task_of(2) }] };
    assert_eq!(seat.hears(&both), (vec![no_procs(1, 0, 4)], vec![]));
    let one = ForemanFrame::Job { seq: 3, tasks: vec![wide.clone()] };
    assert_eq!(seat.hears(&one), (vec![ok(3, 3, 1)], vec![WorkerEvent::Start(vec![wide])]));
    assert_eq!(seat.hears(&job(5, &[])), (vec![ok(5, 3, 1)], vec![]));
    for (seq, tasks) in [(7, vec![1]), (9, vec![2, 2])] {
        let (frames, events) = seat.hears(&job(seq, &tasks));
        assert_eq!(frames, [error(seq, ErrorCode::BadMessage, 0)]);
        assert!(matches!(events[..], [WorkerEvent::Note(ConnectionNote::BadBody { .. })]), "{events:?}");
    }
    assert_eq!(seat.end.counts(), Counts { nrun: 3, nproc: 1 });
}

/// CL_LOOP0 on job done: CL_UPDATE1; on OK: back, or to the exit. UPDATE has its length in arg0, and ends are told one by
/// one. Proves S4.42, S4.62, S4.63, S4.78 and S4.79.
#[test]
fn ends_are_told_one_by_one() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1, 2]));
    assert_eq!(seat.ends(1), (vec![update(2, 1)], vec![]));
    assert_eq!((seat.end.state(), seat.end.counts()), (WorkerEndState::Update1, Counts { nrun: 1, nproc: 1 }));
    assert_eq!(seat.ends(2), (vec![], vec![]), "the second end waits");
    // The foreman's counts are of before the second end: that is no difference.
    assert_eq!(seat.hears(&ok(2, 1, 1)), (vec![update(4, 2)], vec![WorkerEvent::Reported(id_of(1))]));
    assert_eq!(seat.hears(&ok(4, 0, 2)), (vec![], vec![WorkerEvent::Reported(id_of(2))]));
    assert_eq!(seat.end.state(), WorkerEndState::Loop0);
    assert!(!seat.end.task_ended(seat.now, update_of(2)), "it does not run any more");
}

/// CL_UPDATE0: a task has ended, and the UPDATE waits, here for the moment to send it again. JOB obeys the order then.
/// Proves S4.78, S4.80 and S4.22.
#[test]
fn an_update_that_waits() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1]));
    seat.ends(1);
    let (frames, events) = seat.hears(&error(2, ErrorCode::Overflow, 16));
    assert_eq!(frames, []);
    assert!(matches!(events[..], [WorkerEvent::Note(ConnectionNote::Later { .. })]), "{events:?}");
    assert_eq!(seat.end.state(), WorkerEndState::Update0);
    assert_eq!(seat.waits(99), (vec![], vec![]));
    assert_eq!(seat.hears(&job(3, &[2])).0, [ok(3, 1, 1)]);
    assert_eq!(seat.waits(1), (vec![update(4, 1)], vec![]), "with a new number");
    assert_eq!(seat.end.state(), WorkerEndState::Update1);
    assert_eq!(seat.hears(&job(5, &[3])), (vec![], vec![]), "a greater number waits");
    let (frames, events) = seat.hears(&ok(4, 1, 1));
    assert_eq!(frames, [ok(5, 2, 0)]);
    assert_eq!(events, [WorkerEvent::Reported(id_of(1)), WorkerEvent::Start(vec![task_of(3)])]);
}

/// CANCEL is answered at once with the counts as they are; the processors are free when the task is gone, once. A pair,
/// a list, and −1 for all of a job. Proves S4.43, S4.55, S4.56 and S4.80.
#[test]
fn cancel() {
    let mut seat = WorkerSeat::greeted(3);
    seat.hears(&job(1, &[1, 2, 3]));
    assert_eq!(seat.hears(&cancel_of(3, &[Some(2)])), (vec![ok(3, 3, 0)], vec![WorkerEvent::Cancel(vec![id_of(2)])]));
    assert_eq!(seat.end.counts(), Counts { nrun: 3, nproc: 0 }, "its process still runs");
    assert_eq!(seat.ends(2).0, [update(4, 2)]);
    assert_eq!(seat.end.counts(), Counts { nrun: 2, nproc: 1 });
    seat.hears(&ok(4, 2, 1));
    assert_eq!(seat.hears(&cancel_of(5, &[Some(2)])), (vec![error(5, ErrorCode::NoSuchJob, 0)], vec![]), "gone");
    let all = vec![WorkerEvent::Cancel(vec![id_of(1), id_of(3)])];
    assert_eq!(seat.hears(&cancel_of(7, &[None])), (vec![ok(7, 2, 1)], all.clone()));
    assert_eq!(seat.hears(&cancel_of(9, &[Some(1), Some(9), None])), (vec![ok(9, 2, 1)], all), "each once");
    assert_eq!(seat.end.state(), WorkerEndState::Loop0);
}

/// A process that is gone when CANCEL comes is free in the answer, and its UPDATE frees nothing more. Proves S4.56.
#[test]
fn cancel_of_what_has_just_ended() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1, 2]));
    seat.ends(1);
    // The foreman sent it before the UPDATE reached it, with a number above that.
    assert_eq!(seat.hears(&cancel_of(3, &[Some(1), Some(2)])).0, []);
    let (frames, events) = seat.hears(&ok(2, 1, 1));
    assert_eq!(frames, [ok(3, 1, 1)]);
    assert_eq!(events, [WorkerEvent::Reported(id_of(1)), WorkerEvent::Cancel(vec![id_of(2)])]);
}

/// STOP(n) lowers what may be busy; the answer comes first and has the real counts; what is free is never more than what
/// may be busy. Proves S4.57, S4.58 and S4.59.
#[test]
fn stop_some() {
    let mut seat = WorkerSeat::greeted(4);
    seat.hears(&job(1, &[1, 2, 3, 4]));
    assert_eq!(seat.hears(&stop(3, 2)), (vec![ok(3, 4, 0)], vec![WorkerEvent::Stopping { max: 2 }]));
    for (task, seq, nrun, nproc) in [(1, 4, 3, 0), (2, 6, 2, 0), (3, 8, 1, 1)] {
        assert_eq!(seat.ends(task).0, [update(seq, task)]);
        assert_eq!(seat.end.counts(), Counts { nrun, nproc });
        seat.hears(&ok(seq, nrun, nproc));
    }
    assert_eq!(seat.hears(&stop(9, 1)), (vec![ok(9, 1, 0)], vec![WorkerEvent::Stopping { max: 1 }]));
    assert_eq!(seat.hears(&stop(11, 70_000)), (vec![ok(11, 1, 0)], vec![WorkerEvent::Stopping { max: 0 }]));
}

/// STOP(0) stops all, not one: what runs is finished and reported, then the worker leaves. Nobody leaves with nothing
/// free while something runs. Proves S4.44, S4.51, S4.60, S4.78 and S4.79.
#[test]
fn stop_all() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1, 2]));
    assert_eq!(seat.hears(&stop(3, 0)), (vec![ok(3, 2, 0)], vec![WorkerEvent::Stopping { max: 0 }]));
    seat.ends(1);
    assert_eq!(seat.hears(&ok(4, 1, 0)), (vec![], vec![WorkerEvent::Reported(id_of(1))]));
    assert_eq!(seat.end.state(), WorkerEndState::Loop0, "nothing is free, and one task runs");
    seat.ends(2);
    assert_eq!(seat.end.state(), WorkerEndState::Update1, "the last end must be known before it leaves");
    assert_eq!(seat.hears(&ok(6, 0, 0)), (vec![], vec![WorkerEvent::Reported(id_of(2)), WorkerEvent::Exit]));
    assert_eq!(seat.end.state(), WorkerEndState::Exit0);
    let mut idle = WorkerSeat::greeted(2);
    let told = vec![WorkerEvent::Stopping { max: 0 }, WorkerEvent::Exit];
    assert_eq!(idle.hears(&stop(1, 0)), (vec![ok(1, 0, 0)], told));
}

/// STOP(immediate) in any state: OK(0|0) and CL_EXIT1. Proves S4.18, S4.44, S4.60, S4.65 and S4.78.
#[test]
fn stop_at_once() {
    let mut waiting = WorkerSeat::greeted(2);
    waiting.hears(&job(1, &[1, 2]));
    waiting.ends(1);
    let seats = [WorkerSeat::worker(2, ForemanSettings::default()), WorkerSeat::greeted(2), waiting];
    for (mut seat, seq) in seats.into_iter().zip([1, 1, 3]) {
        assert_eq!(seat.hears(&stop(seq, u32::MAX)), (vec![ok(seq, 0, 0)], vec![WorkerEvent::ExitNow]));
        assert_eq!((seat.end.state(), seat.end.next_deadline()), (WorkerEndState::Exit1, None));
        assert_eq!(seat.hears(&job(seq + 2, &[9])), (vec![], vec![]), "nothing is done any more");
    }
}

/// ERROR: `bad_message` is logged and not said again, other codes likewise; a refused HELLO ends the connection. Proves
/// S4.61 and S4.80.
#[test]
fn errors() {
    for code in [ErrorCode::BadMessage, ErrorCode::NoSuchJob, ErrorCode::NoProcs, ErrorCode::Other(99)] {
        let mut seat = WorkerSeat::greeted(2);
        seat.hears(&job(1, &[1]));
        seat.ends(1);
        let (frames, events) = seat.hears(&error(2, code, 0));
        assert_eq!(frames, []);
        assert_eq!(events[1], WorkerEvent::NotReported { id: id_of(1), code });
        assert_eq!(seat.end.state(), WorkerEndState::Loop0);
        let mut greeting = WorkerSeat::worker(2, ForemanSettings::default());
        greeting.hears(&ok(0, 0, 0));
        let events = greeting.hears(&error(0, code, 0)).1;
        assert_eq!(events, [WorkerEvent::Close(CloseReason::HelloRefused(code))]);
    }
}

/// A foreman that counts differently gets a new HELLO; if it still does, the connection ends. Proves S4.50.
#[test]
fn a_difference_of_counts() {
    let mut seat = WorkerSeat::greeted(2);
    seat.hears(&job(1, &[1]));
    seat.ends(1);
    let (frames, events) = seat.hears(&ok(2, 1, 1));
    assert_eq!(frames, [hello(4, 2)]);
    let mismatch =
        ConnectionNote::Mismatch { ours: Counts { nrun: 0, nproc: 2 }, theirs: Counts { nrun: 1, nproc: 1 } };
    assert_eq!(events, [WorkerEvent::Reported(id_of(1)), WorkerEvent::Note(mismatch)]);
    let mut healed = WorkerSeat { end: seat.end.clone(), now: seat.now };
    assert_eq!(healed.hears(&ok(4, 0, 2)), (vec![], vec![]));
    healed.hears(&job(5, &[2]));
    healed.ends(2);
    let events = healed.hears(&ok(6, 1, 1)).1;
    assert_eq!(events[2], WorkerEvent::Close(CloseReason::MismatchAgain), "the first UPDATE after it is wrong again");
    let events = seat.hears(&ok(4, 1, 1)).1;
    assert_eq!(events, [WorkerEvent::Note(mismatch), WorkerEvent::Close(CloseReason::MismatchAgain)]);
}

/// OK(0xFFFF|0xFFFF): the foreman knows nothing. HELLO lists the task too whose end was not taken in, and its UPDATE
/// follows. Proves S4.40 and S4.63.
#[test]
fn a_foreman_that_knows_nothing() {
    let mut seat = WorkerSeat::greeted(3);
    seat.hears(&job(1, &[1, 2]));
    seat.ends(2);
    let running = [1, 2].map(|task| Running { task, job: JOB, attempt: 0, procs: 1 });
    let listed = Hello { num_procs: 3, running: running.to_vec(), ..Hello::default() };
    let (frames, events) = seat.hears(&ForemanFrame::Ok { seq: 2, counts: Counts::SEND_HELLO });
    assert_eq!(frames, [ForemanFrame::Hello { seq: 4, hello: Some(listed) }]);
    assert_eq!(events, [WorkerEvent::Note(ConnectionNote::HelloWanted)]);
    assert_eq!(seat.hears(&ok(4, 2, 1)), (vec![update(6, 2)], vec![]));
    assert_eq!(seat.hears(&ok(6, 1, 2)), (vec![], vec![WorkerEvent::Reported(id_of(2))]));
}

/// A connection is lost: tasks go on, and their ends are told on the next one after HELLO, with new numbers. Proves
/// S4.11, S4.36 and S4.63.
#[test]
fn a_connection_is_lost() {
    let mut seat = WorkerSeat::greeted(3);
    seat.hears(&job(1, &[1, 2, 3]));
    seat.ends(1);
    seat.does(|worker, _| worker.disconnect());
    assert_eq!(seat.ends(2), (vec![], vec![]), "nobody is there to be told");
    assert_eq!((seat.end.state(), seat.end.next_deadline()), (WorkerEndState::Init0, None));
    seat.does(Worker::connect);
    let (frames, _) = seat.hears(&ok(0, 0, 0));
    let [ForemanFrame::Hello { seq: 0, hello: Some(hello) }] = &frames[..] else { panic!("{frames:?}") };
    let listed: Vec<u32> = hello.running.iter().map(|running| running.task).collect();
    assert_eq!((hello.num_procs, listed), (3, vec![1, 2, 3]));
    assert_eq!(seat.hears(&ok(0, 3, 0)), (vec![update(2, 1)], vec![WorkerEvent::Greeted]));
    assert_eq!(seat.hears(&ok(2, 2, 1)), (vec![update(4, 2)], vec![WorkerEvent::Reported(id_of(1))]));
    assert_eq!(seat.hears(&ok(4, 1, 2)), (vec![], vec![WorkerEvent::Reported(id_of(2))]));
}

/// A task that is given again while the end of its last attempt is not confirmed stands in HELLO once, as it runs now.
/// Proves S4.63.
#[test]
fn a_new_attempt_beside_an_unconfirmed_end() {
    let mut seat = WorkerSeat::greeted(3);
    let attempt = |attempt| ForemanFrame::Job { seq: 1, tasks: vec![Task { attempt, ..task_of(1) }] };
    seat.hears(&attempt(1));
    seat.does(|worker, _| worker.disconnect());
    seat.ends(1);
    for reconnected in [false, true] {
        seat.does(Worker::connect);
        let (frames, _) = seat.hears(&ok(0, 0, 0));
        let [ForemanFrame::Hello { hello: Some(hello), .. }] = &frames[..] else { panic!("{frames:?}") };
        let listed: Vec<u32> = hello.running.iter().map(|running| running.attempt).collect();
        assert_eq!(listed, [if reconnected { 2 } else { 1 }]);
        let (frames, _) = seat.hears(&ok(0, 1, 2));
        assert!(matches!(&frames[..], [ForemanFrame::Update { seq: 2, update }] if update.attempt == 1), "{frames:?}");
        if !reconnected {
            assert_eq!(seat.hears(&attempt(2)).0, [ok(1, 1, 2)]);
        }
    }
    // Both have ended, and neither is confirmed.
    seat.ends(1);
    seat.does(Worker::connect);
    let (frames, _) = seat.hears(&ok(0, 0, 0));
    let [ForemanFrame::Hello { hello: Some(hello), .. }] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(hello.running, [Running { task: 1, job: JOB, attempt: 2, procs: 1 }]);
}

/// A worker that wants less says HELLO with the new number, once, and refuses what was on its way; with none left it ends
/// in order when its tasks have. Proves S4.51, S4.59 and S4.79 for a worker that ends by itself.
#[test]
fn a_worker_shrinks_by_itself() {
    let mut seat = WorkerSeat::greeted(4);
    seat.hears(&job(1, &[1, 2]));
    assert_eq!(seat.does(|end, now| end.shrink(now, 1)), (vec![hello_with(2, 1, &[1, 2])], vec![]));
    assert_eq!(seat.does(|end, now| end.shrink(now, 3)).0, [], "it never grows, and the first HELLO has no answer yet");
    assert_eq!(seat.hears(&job(3, &[3])), (vec![], vec![]), "that waits for the answer to HELLO");
    let (frames, events) = seat.hears(&ok(2, 2, 0));
    assert_eq!((frames, events), (vec![no_procs(3, 2, 0), hello_with(4, 1, &[1, 2])], vec![]));
    seat.hears(&ok(4, 2, 0));
    assert_eq!(seat.does(|end, now| end.shrink(now, 0)), (vec![hello_with(6, 0, &[1, 2])], vec![]));
    seat.hears(&ok(6, 2, 0));
    assert_eq!(seat.does(|end, now| assert!(end.task_ended(now, update_of(1)))).0, [update(8, 1)]);
    seat.hears(&ok(8, 1, 0));
    assert_eq!(seat.end.unconfirmed(), 0);
    assert_eq!(seat.does(|end, now| assert!(end.task_ended(now, update_of(2)))).0, [update(10, 2)]);
    assert_eq!(seat.end.unconfirmed(), 1);
    assert_eq!(seat.hears(&ok(10, 0, 0)).1, [WorkerEvent::Reported(id_of(2)), WorkerEvent::Exit]);
}

/// Before it is greeted, or while it is apart, the next HELLO says the new number.
#[test]
fn a_worker_shrinks_before_it_is_greeted() {
    let mut seat = WorkerSeat::worker(4, ForemanSettings::default());
    assert_eq!(seat.does(|end, now| end.shrink(now, 2)), (vec![], vec![]));
    assert_eq!(seat.hears(&ok(0, 0, 0)), (vec![hello(0, 2)], vec![]));
    assert_eq!(seat.does(|end, now| end.shrink(now, 0)).0, []);
    assert_eq!(seat.hears(&ok(0, 0, 2)), (vec![hello(2, 0)], vec![WorkerEvent::Greeted]));
    assert_eq!(seat.hears(&ok(2, 0, 0)).1, [WorkerEvent::Exit]);
}

fn hello_with(seq: u32, num_procs: u16, tasks: &[u32]) -> ForemanFrame {
    let ForemanFrame::Hello { hello: Some(plain), .. } = hello(seq, num_procs) else { panic!("it has a body") };
    ForemanFrame::Hello {
        seq,
        hello: Some(Hello { running: tasks.iter().map(|task| Running::from(&task_of(*task))).collect(), ..plain }),
    }
}
