//! What tasks print, on its way from the real worker to the real broker.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use turno_e2e::{Broker, Peer, Place, wait};
use turno_proto::model::archive::OutputPiece;

const LONG: Duration = wait::PATIENCE;

/// A broker that keeps 4 KiB of each task's output.
fn frugal() -> Broker {
    let place = Place::new();
    let file = place.file("turno.toml", "[jobs]\noutput-per-task = \"4KiB\"\n").display().to_string();
    Broker::start_in(place, &["--config", &file])
}

fn peer(broker: &Broker) -> Peer {
    Peer::greeted(broker.address(), 60_000)
}

/// What was printed is there when the task's end is told, each stream by itself and each task under its number.
#[test]
fn what_tasks_print_is_there_when_they_have_ended() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "4"]);
    let script = "echo out $TURNO_TASK_ID; echo err $TURNO_TASK_ID >&2; echo again";
    let job = broker.submit(&["--array", "1-40"], &["sh", "-c", script]);
    assert_eq!(broker.wait_for_job(job), 0);
    for task in [1, 17, 40] {
        assert_eq!(broker.printed(job, task), (format!("out {task}\nagain\n"), format!("err {task}\n")));
    }
    let pieces = peer(&broker).output(job);
    assert!(pieces.is_sorted_by_key(|piece| (piece.task, piece.attempt, piece.at)), "{pieces:?}");
}

/// A flood: its beginning and its end are kept, to the byte, and the worker does not grow.
#[test]
fn of_a_flood_the_beginning_and_the_end_are_kept() {
    let broker = frugal();
    let job_worker = broker.job_worker(&["--slots", "1"]);
    let flood = "echo begin; head -c 300000000 /dev/zero; echo; echo end";
    let job = broker.submit(&[], &["sh", "-c", flood]);
    assert_eq!(broker.wait_for_job(job), 0);
    let pieces = peer(&broker).output(job);
    let bytes = |piece: &OutputPiece| piece.bytes.len() as u64;
    let mut end = 0;
    let mut gaps = Vec::new();
    for piece in &pieces {
        assert!(piece.at >= end, "pieces are in order and do not overlap");
        if piece.at > end {
            gaps.push((end, piece.at));
        }
        end = piece.at + bytes(piece);
    }
    let all = 6 + 300_000_000 + 1 + 4;
    assert_eq!(gaps, [(2_048, all - 2_048)], "2 KiB of the beginning, 2 KiB of the end");
    assert_eq!((end, pieces.iter().map(bytes).sum::<u64>()), (all, 4_096));
    assert!(pieces[0].bytes.starts_with(b"begin\n\0\0"));
    assert!(pieces.last().is_some_and(|piece| piece.bytes.ends_with(b"\0\nend\n")));
    let status = fs::read_to_string(format!("/proc/{}/status", job_worker.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100_000, "{peak} KiB at the most");
}

/// Somebody who follows a task sees what it prints now, also long after its beginning.
#[test]
fn a_follower_sees_what_would_be_left_out() {
    let broker = frugal();
    let _job_worker = broker.job_worker(&["--slots", "1"]);
    let script = "head -c 100000 /dev/zero; : > full; until [ -e look ]; do sleep 0.02; done; echo look at this; \
                  until [ -e go ]; do sleep 0.02; done; head -c 100000 /dev/zero; echo bye";
    let job = broker.submit(&[], &["sh", "-c", script]);
    let path = |name: &str| broker.place.path().join(name);
    wait::until("the beginning is full", || path("full").exists());
    let mut look = broker.start_turno(&["job", "logs", "--follow", &job.to_string()]);
    fs::write(path("look"), "").unwrap();
    look.expect_line("look at this");
    fs::write(path("go"), "").unwrap();
    assert_eq!(look.end(LONG), 0);
    assert!(look.stdout().last().is_some_and(|line| line.ends_with("bye")), "what was written last is shown, too");
    assert_eq!(broker.wait_for_job(job), 0);
    let kept: Vec<u8> = peer(&broker).output(job).iter().flat_map(|piece| piece.bytes.to_vec()).collect();
    assert!(kept.ends_with(b"bye\n"));
    assert_eq!(kept.len(), 4_096, "what was only shown is not kept");
}

/// The broker is killed while tasks print: they go on, and all of it is there in the end.
#[test]
fn a_broker_that_is_killed_has_all_output_in_the_end() {
    let mut broker = Broker::start_with(&["--foreman-listen", "127.0.0.1:0"]);
    let (address, foreman) = (broker.address().to_string(), broker.foreman().to_string());
    let job_worker = broker.job_worker(&["--slots", "2"]);
    let script = "seq 1 20000; : > first.$TURNO_TASK_ID; until [ -e go ]; do sleep 0.02; done; seq 20001 40000";
    let job = broker.submit(&["--array", "1-2"], &["sh", "-c", script]);
    wait::until("both have begun", || (1..3).all(|task| broker.place.path().join(format!("first.{task}")).exists()));
    broker.kill();
    fs::write(broker.place.path().join("go"), "").unwrap();
    let place = broker.into_place();
    let broker = Broker::start_in_at(place, &address, &["--foreman-listen", &foreman]);
    assert_eq!(broker.wait_for_job(job), 0);
    let all: String = (1..=40_000).map(|number| format!("{number}\n")).collect();
    for task in 1..=2 {
        assert!(broker.printed(job, task) == (all.clone(), String::new()), "task {task}");
    }
    let attempts: Vec<Value> = broker.tasks(job).iter().map(|task| task["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 1], "the tasks went on meanwhile");
    drop(job_worker);
}

/// A task whose program cannot be started, is killed or has reached its time limit leaves what it printed.
#[test]
fn what_was_printed_outlives_an_end_by_force() {
    let broker = Broker::start();
    let mut job_worker = broker.job_worker(&["--slots", "2"]);
    let killed = broker.submit(&[], &["sh", "-c", "echo before; kill -9 $$"]);
    let late = broker.submit(&["--time-limit", "3s"], &["sh", "-c", "echo waiting; sleep 600"]);
    assert_eq!((broker.wait_for_job(killed), broker.wait_for_job(late)), (1, 1));
    assert_eq!(broker.printed(killed, 1).0, "before\n");
    assert_eq!(broker.printed(late, 1).0, "waiting\n");
    job_worker.signal(rustix::process::Signal::TERM);
    assert_eq!(job_worker.end(LONG), 0);
}
