//! The outbox on a real connection, before a broker that the test plays.

use std::fs;
use std::sync::{Arc, Mutex};

use turno_proto::foreman::Task;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::super::{Outbox, Recorder};
use super::*;
use crate::job_worker::double::{Act, Double, until};

fn told_to_keep(per_task: u64, follow: Vec<(JobId, u32)>) -> Act {
    Act::Answer(AdminAnswer::OutputKept { per_task, follow, refused: Vec::new() })
}

fn task(number: u32) -> Task {
    Task { job: 7, task: number, attempt: 1, ..Task::default() }
}

/// The pieces that the double got.
type PlaceholderValues = Arc<Mutex<Vec<OutputPiece>>>;

fn text(given: &PlaceholderValues, task: u32) -> Vec<u8> {
    let mut pieces = given.lock().unwrap().clone();
    pieces.retain(|piece| piece.task == task && !piece.live);
    pieces.sort_by_key(|piece| piece.at);
    pieces.dedup_by_key(|piece| piece.at);
    pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
}

async fn begin(outbox: &Outbox, number: u32) -> Recorder {
    outbox.begin(&task(number)).await.expect("nothing is in the way")
}

/// It hangs up before and after it has kept something, is busy, and in the end has all of it.
#[tokio::test]
async fn what_is_written_arrives_through_hang_ups_and_refusals() {
    let given = PlaceholderValues::default();
    let keep = Arc::clone(&given);
    let mut calls = 0;
    let double = Double::start(move |call| {
        let AdminCall::TaskOutput { worker, pieces } = call else { return Act::Refuse(Code::BadCall) };
        assert_eq!(worker, "w-1");
        calls += 1;
        match calls % 5 {
            1 => Act::HangUp,
            2 => Act::Refuse(Code::ArchiveBusy),
            kept => {
                keep.lock().unwrap().extend(pieces);
                if kept == 3 { Act::HangUp } else { told_to_keep(1 << 20, Vec::new()) }
            }
        }
    });
    let outbox = Outbox::start("w-1", double.options());
    let (mut one, mut two) = (begin(&outbox, 1).await, begin(&outbox, 2).await);
    for line in 0..50_000 {
        one.wrote(Stdout, format!("{line}\n").as_bytes()).await.unwrap();
    }
    two.wrote(Stderr, b"x").await.unwrap();
    tokio::join!(one.end(), two.end());
    let wanted: String = (0..50_000).map(|line| format!("{line}\n")).collect();
    assert!(text(&given, 1) == wanted.as_bytes());
    assert_eq!(text(&given, 2), b"x");
    assert_eq!(outbox.close().await, Lost::default());
}

/// One that has not kept anything in time does not hold up the end of the worker.
#[tokio::test]
async fn a_worker_ends_before_a_silent_broker() {
    let double = Double::start(|_| Act::Nothing);
    let outbox = Outbox::start("w-1", double.options());
    let mut one = begin(&outbox, 1).await;
    one.wrote(Stdout, b"abc").await.unwrap();
    let end = tokio::spawn(one.end());
    assert_eq!(outbox.close().await, Lost { tasks: 1, bytes: 3 });
    end.await.expect("the waiting task is told");
}

/// With a beginning that is too large to be held, the task waits for the broker, and goes on when that has taken some.
#[tokio::test]
async fn a_task_waits_until_there_is_room() {
    let given = PlaceholderValues::default();
    let keep = Arc::clone(&given);
    let double = Double::start(move |call| {
        if let AdminCall::TaskOutput { pieces, .. } = call {
            keep.lock().unwrap().extend(pieces);
        }
        told_to_keep(1 << 30, Vec::new())
    });
    let outbox = Outbox::start("w-1", double.options());
    let mut one = begin(&outbox, 1).await;
    let block = vec![b'x'; 65_536];
    // Before the first answer a megabyte is kept of it, and it may be past the half of that already.
    until("the answer to the first question", || outbox.is_told()).await;
    drop(one);
    one = begin(&outbox, 2).await;
    for _ in 0..160 {
        one.wrote(Stdout, &block).await.unwrap();
    }
    one.end().await;
    assert_eq!(text(&given, 2).len(), 160 * block.len(), "nothing is left out");
}

#[tokio::test]
async fn somebody_who_looks_is_shown_the_end_within_moments() {
    let (given, looks) = (PlaceholderValues::default(), Arc::new(Mutex::new(false)));
    let (keep, look) = (Arc::clone(&given), Arc::clone(&looks));
    let double = Double::start(move |call| {
        if let AdminCall::TaskOutput { pieces, .. } = call {
            keep.lock().unwrap().extend(pieces);
        }
        told_to_keep(8, if *look.lock().unwrap() { vec![(JOB, 1)] } else { Vec::new() })
    });
    let outbox = Outbox::start("w-1", double.options());
    until("the answer to the first question", || outbox.is_told()).await;
    let mut one = begin(&outbox, 1).await;
    one.wrote(Stdout, b"beginend").await.unwrap();
    *looks.lock().unwrap() = true;
    until("the end is shown", || given.lock().unwrap().iter().any(|piece| piece.live && piece.at == 4)).await;
    one.end().await;
    assert_eq!(text(&given, 1), b"beginend");
}

/// Files at the worker: directories are made, streams are apart, and a full disk is told.
#[tokio::test]
async fn output_goes_to_files_where_that_was_asked_for() {
    let double = Double::start(|call| match call {
        AdminCall::TaskOutput { pieces, .. } if pieces.is_empty() => told_to_keep(8, Vec::new()),
        _ => panic!("nothing goes to the broker"),
    });
    let outbox = Outbox::start("w-1", double.options());
    let dir = tempfile::tempdir().unwrap();
    let out = |dir: &str| Task { logging_dir: dir.to_owned(), ..task(3) };
    let wanted = dir.path().join("a/b");
    let mut recorder = outbox.begin(&out(wanted.to_str().unwrap())).await.unwrap();
    recorder.wrote(Stdout, b"one ").await.unwrap();
    recorder.wrote(Stderr, b"oops").await.unwrap();
    recorder.wrote(Stdout, b"two").await.unwrap();
    recorder.end().await;
    assert_eq!(fs::read(wanted.join("7/3.1.stdout")).unwrap(), b"one two");
    assert_eq!(fs::read(wanted.join("7/3.1.stderr")).unwrap(), b"oops");
    let within = Task { working_dir: dir.path().to_str().unwrap().to_owned(), ..out("logs") };
    drop(outbox.begin(&within).await.unwrap());
    assert!(dir.path().join("logs/7/3.1.stdout").is_file(), "a relative directory is in the task's one");

    let full = dir.path().join("full");
    fs::create_dir_all(full.join("7")).unwrap();
    std::os::unix::fs::symlink("/dev/full", full.join("7/3.1.stdout")).unwrap();
    let mut recorder = outbox.begin(&out(full.to_str().unwrap())).await.unwrap();
    let error = recorder.wrote(Stdout, b"x").await.unwrap_err();
    assert_eq!(error, format!("cannot write {}: no space left on device", full.join("7/3.1.stdout").display()));
    let error = outbox.begin(&out("/dev/null/x")).await.unwrap_err();
    assert_eq!(error, "cannot make the directory /dev/null/x/7: not a directory");
}
