//! `turno work`: any program is a worker. What it gets, what its answer is, and how it fails.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use turno_e2e::{Broker, Place, wait};

/// A worker with a shell script.
fn scripted(broker: &Broker, name: &str, body: &str, flags: &[&str]) -> turno_e2e::Background {
    let program = broker.place.script(name, body).display().to_string();
    broker.worker(&[flags, &["--", &program]].concat())
}

/// Proves S0.37: the body is the program's stdin, its stdout the reply.
#[test]
fn the_body_is_stdin_and_stdout_the_reply() {
    let broker = Broker::start();
    let _shout = broker.worker(&["shout", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(broker.run(&["request", "shout", "hello"]).expect(0).text(), "HELLO");
    let _count = broker.worker(&["count", "--", "wc", "-c"]);
    let run = broker.place.run_with_input(["request", "count", "-"], &vec![0; 5_000_000]).expect(0);
    assert_eq!(run.text().trim(), "5000000");
    let _silent = broker.worker(&["silent", "--", "true"]);
    assert_eq!(broker.run(&["request", "silent", "x"]).expect(0).text(), "");
}

/// The program knows which message it works for. Proves S2.35: the attempt counts deliveries.
#[test]
fn the_program_sees_queue_id_and_attempt() {
    let broker = Broker::start();
    let script = "echo $TURNO_QUEUE $TURNO_MESSAGE_ID $TURNO_ATTEMPT >> seen; [ $TURNO_ATTEMPT = 2 ]";
    let _worker = scripted(&broker, "seen.sh", script, &["some.queue"]);
    let id = broker.run(&["send", "some.queue", "x", "-o", "name"]).expect(0).text();
    let id = id.trim();
    wait::until("it is settled", || broker.status()["counters"]["acked"] == 1);
    let seen = fs::read_to_string(broker.place.path().join("seen")).expect("the program wrote it");
    assert_eq!(seen, format!("some.queue {id} 1\nsome.queue {id} 2\n"));
    assert_eq!(broker.status()["counters"]["retried"], 1);
}

/// Any exit status but 0 is a failure, and the caller reads the end of what the program said.
#[test]
fn a_failure_tells_the_caller_what_the_program_said() {
    let broker = Broker::start();
    let _worker = scripted(&broker, "fail", "echo partial; echo first >&2; echo boom >&2; exit 3", &["q"]);
    let run = broker.run(&["request", "q", "x"]).expect(1);
    assert_eq!(run.text(), "", "the output of a failure is no reply");
    for expected in ["exit 3", "boom", "code: failed"] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    let error = broker.run(&["request", "q", "x", "--json"]).expect(1).document("turno.error/1")["error"].take();
    assert!(error["detail"].as_str().is_some_and(|detail| detail.contains("first\nboom")), "{error}");
    let _mute = scripted(&broker, "mute", "exit 7", &["mute"]);
    let run = broker.run(&["request", "mute", "x"]).expect(1);
    assert!(run.stderr.contains("exit 7"), "{}", run.stderr);
    let _killed = scripted(&broker, "killed", "kill -KILL $$", &["killed"]);
    let run = broker.run(&["request", "killed", "x"]).expect(1);
    assert!(run.stderr.contains("signal 9"), "{}", run.stderr);
    let _long = scripted(&broker, "long", "seq 1 5000 >&2; exit 1", &["long"]);
    let run = broker.run(&["request", "long", "x"]).expect(1);
    assert!(
        run.stderr.contains("5000") && run.stderr.len() < 6_000,
        "the end of it, and not all: {}",
        run.stderr.len()
    );
}

/// What programs write to stderr goes on to the worker's, line by line.
#[test]
fn the_programs_stderr_is_shown() {
    let broker = Broker::start();
    let worker = scripted(&broker, "talk", "echo working on it >&2; cat", &["q"]);
    assert_eq!(broker.run(&["request", "q", "x"]).expect(0).text(), "x");
    worker.expect_line("working on it");
    assert!(!worker.stdout().iter().any(|line| line.contains("working")), "stdout is for data");
}

/// A message that fails at every attempt ends as a dead letter, with the reason.
#[test]
fn a_message_that_always_fails_is_dead() {
    let broker = Broker::start();
    let _worker = scripted(&broker, "fail", "echo never >&2; exit 1", &["q"]);
    let id = broker.run(&["send", "q", "x", "--retries", "2", "-o", "name"]).expect(0).text();
    wait::until("it is dead", || broker.queue("q")["dead"] == 1);
    assert_eq!(broker.queue("q")["counters"]["deliveries"], 3);
    let run = broker.run(&["message", "explain", id.trim(), "--json"]).expect(0);
    let document = run.document("turno.explanation/1");
    assert_eq!((&document["message"]["state"], &document["because"]["reason"]), (&"dead".into(), &"dead".into()));
    assert!(document["because"]["text"].as_str().is_some_and(|text| text.contains("never")), "{document}");
}

/// Proves S2.41: a program gives a message back without using up the only attempt, and says when it comes again.
#[test]
fn a_program_gives_a_message_back() {
    let broker = Broker::start();
    let script = "if [ -e once ]; then echo $TURNO_ATTEMPT > attempt; exit; fi; \
                  touch once; echo turno-retry-after: 10ms >&2; exit 75";
    let _worker = scripted(&broker, "busy", script, &["q"]);
    broker.run(&["send", "q", "x", "--retries", "0"]).expect(0);
    wait::until("it is settled", || broker.status()["counters"]["acked"] == 1);
    let attempt = fs::read_to_string(broker.place.path().join("attempt")).expect("the program wrote it");
    assert_eq!(attempt, "1\n");
    let counters = broker.queue("q")["counters"].take();
    assert_eq!((&counters["returned"], &counters["retried"]), (&1.into(), &0.into()), "{counters}");
}

/// A program that cannot be started is an error before anything is registered, or even asked.
#[test]
fn a_program_that_cannot_start_is_refused_at_once() {
    let broker = Broker::start();
    let plain = broker.place.file("plain.txt", "hello");
    let directory = broker.place.path().display().to_string();
    let table = [
        ("no-such-program", "no directory in PATH contains a program with this name"),
        ("./no/such/file", "the file does not exist"),
        (plain.to_str().expect("text"), "is not executable"),
        (directory.as_str(), "is not executable"),
    ];
    for (program, why) in table {
        let run = broker.run(&["work", "q", "--", program]).expect(1);
        assert!(run.stderr.contains(&format!("error: cannot start {program}")), "{}", run.stderr);
        assert!(run.stderr.contains(why) && run.stderr.contains("code: cannot_start"), "{}", run.stderr);
    }
    assert_eq!(broker.status()["counters"]["requests"], 0);
    assert_eq!(broker.workers(), 0);
    let nowhere = Place::new();
    nowhere.run(["work", "q", "--url", "unix:/nowhere", "--", "no-such-program"]).expect(1);
}

/// One that can no longer be started fails its messages and says why; the worker goes on.
#[test]
fn a_program_that_is_gone_fails_its_messages() {
    let broker = Broker::start();
    let path = broker.place.script("here", "echo here");
    let worker = broker.worker(&["q", "--", &path.display().to_string()]);
    assert_eq!(broker.run(&["request", "q", "x"]).expect(0).text(), "here\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
    let run = broker.run(&["request", "q", "x"]).expect(1);
    assert!(run.stderr.contains("cannot_start"), "{}", run.stderr);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    assert_eq!(broker.run(&["request", "q", "x"]).expect(0).text(), "here\n");
    drop(worker);
}

/// One worker may serve several queues, and has its slots for all of them together.
#[test]
fn one_worker_serves_several_queues() {
    let broker = Broker::start();
    let _worker = scripted(&broker, "which", "echo $TURNO_QUEUE", &["a", "b.c", "d", "--slots", "2", "--name", "w"]);
    for queue in ["a", "b.c", "d"] {
        assert_eq!(broker.run(&["request", queue, "x"]).expect(0).text(), format!("{queue}\n"));
    }
    let shown = broker.run(&["worker", "show", "w", "--json"]).expect(0).document("turno.worker/1");
    assert_eq!(shown["worker"]["queues"], serde_json::json!(["a", "b.c", "d"]));
    assert_eq!((&shown["worker"]["settled"], broker.workers()), (&3.into(), 1));
}

/// Two workers share the work: each has one of two messages that wait for each other.
#[test]
fn two_workers_share_the_work() {
    let broker = Broker::start();
    let meet = |mine: &str, other: &str| {
        format!("touch {mine}; while [ -d \"$PWD\" ] && [ ! -e {other} ]; do sleep 0.01; done; echo {mine}")
    };
    let _left = scripted(&broker, "left.sh", &meet("left", "right"), &["q", "--slots", "1"]);
    let _right = scripted(&broker, "right.sh", &meet("right", "left"), &["q", "--slots", "1"]);
    let run = broker.run(&["request", "q", "x", "--count", "2", "--parallel", "2", "--timeout", "1m"]).expect(0);
    let text = run.text();
    let mut lines: Vec<&str> = text.split_whitespace().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["left", "right"]);
}

/// No more programs run at a time than the worker has slots. Proves S0.6: the broker keeps count.
#[test]
fn no_more_run_at_a_time_than_there_are_slots() {
    let broker = Broker::start();
    let script = "mkdir slot.1 2>/dev/null && mine=slot.1 || { mkdir slot.2 2>/dev/null && mine=slot.2; } || { echo full; exit 0; }
sleep 0.02; rmdir $mine; echo fine";
    let _worker = scripted(&broker, "slots", script, &["q", "--slots", "2"]);
    let run = broker.run(&["request", "q", "x", "--count", "40", "--parallel", "20", "--timeout", "1m"]).expect(0);
    let text = run.text();
    assert_eq!(text.lines().filter(|line| *line == "fine").count(), 40, "{text}");
}

/// The reply of a program is never held up by what it leaves in the background holding its pipes.
#[test]
fn what_is_left_in_the_background_does_not_hold_the_reply_for_ever() {
    let broker = Broker::start();
    let _worker = scripted(&broker, "leave", "echo done; sleep 600 & echo $! > left", &["q"]);
    let run = broker.run(&["request", "q", "x", "--timeout", "1m"]).expect(0);
    assert_eq!(run.text(), "done\n");
    let left = fs::read_to_string(broker.place.path().join("left")).expect("the program wrote it");
    let left: u32 = left.trim().parse().expect("a process id");
    let killed = wait::find(wait::PATIENCE, || (!turno_e2e::process::alive(left)).then_some(()));
    assert!(killed.is_some(), "what held the pipes was ended with its group");
}
