//! Tasks that `turno worker start` runs: how they start, and how they end.

use std::fs;

use turno_e2e::process::alive;
use turno_e2e::{Broker, wait};

/// A task has its words, its directory, its environment and its facts, and no shell reads any of it.
#[test]
fn tasks_run_as_they_were_submitted() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "2"]);
    let dir = broker.place.path().join("some where");
    fs::create_dir(&dir).unwrap();
    let place = dir.display().to_string();
    let script = "echo $TURNO_JOB_ID $TURNO_TASK_ID $TURNO_TASK_COUNT $TURNO_ATTEMPT $TURNO_SLOTS \"$OWN\" \"$0\" > out.$TURNO_TASK_ID";
    let flags = ["--array", "5-7:2", "--slots", "2", "--cwd", &place, "--env", "OWN=a  b"];
    let job = broker.submit(&flags, &["sh", "-c", script, "$HOME;  *"]);
    assert_eq!(broker.wait_for_job(job), 0);
    for task in [5, 7] {
        let out = fs::read_to_string(dir.join(format!("out.{task}"))).unwrap();
        assert_eq!(out, format!("{job} {task} 2 1 2 a  b $HOME;  *\n"));
    }
    let tasks = broker.tasks(job);
    assert!(tasks.iter().all(|task| task["state"] == "finished" && task["exit_code"] == 0), "{tasks:?}");
}

/// Flags and command; exit code, signal and words.
type Failing<'a> = (&'a [&'a str], &'a [&'a str], Option<i64>, Option<i64>, &'a str);

/// Each way to fail has its words and its code, so that failures can be told apart and put together.
#[test]
fn failures_have_their_words() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "4"]);
    let plain = broker.place.file("plain", "no program").display().to_string();
    let gone = broker.place.path().join("gone").display().to_string();
    let table: &[Failing<'_>] = &[
        (
            &[],
            &["sh", "-c", "echo first >&2; echo no such sample >&2; exit 3"],
            Some(3),
            None,
            "exit 3: no such sample",
        ),
        (&[], &["sh", "-c", "kill -KILL $$"], None, Some(9), "killed by signal 9"),
        (&[], &["./sim"], Some(127), None, "not found: ./sim"),
        (&[], &[&plain], Some(126), None, "(permission denied)"),
        (&["--cwd", &gone], &["true"], None, None, "no such directory: "),
        (&["--time-limit", "200ms"], &["sleep", "60"], None, None, "time limit of 200ms"),
    ];
    for (flags, command, code, signal, status) in table {
        let job = broker.submit(flags, command);
        assert_eq!(broker.wait_for_job(job), 1, "{command:?}");
        let task = &broker.tasks(job)[0];
        let said = task["status"].as_str().unwrap_or_default();
        assert!(said.contains(status), "{command:?}: {task}");
        assert_eq!((task["exit_code"].as_i64(), task["signal"].as_i64()), (*code, *signal), "{command:?}");
    }
    let again =
        broker.submit(&["--retries", "2"], &["sh", "-c", "echo $TURNO_ATTEMPT >> tries; [ $TURNO_ATTEMPT = 3 ]"]);
    assert_eq!(broker.wait_for_job(again), 0);
    assert_eq!(broker.written("tries"), "1\n2\n3");
}

/// Proves S4.55, S4.56: a task that forks and ignores TERM is killed with all it started, and its slot is free when all
/// of it is gone.
#[test]
fn a_stubborn_task_is_cancelled() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "1"]);
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > child; while [ -d \"$PWD\" ]; do sleep 0.05; done' & \
                  echo $$ > leader; while [ -d \"$PWD\" ]; do sleep 0.05; done";
    let job = broker.submit(&[], &["sh", "-c", script]);
    let (leader, child) = (broker.written_id("leader"), broker.written_id("child"));
    // One that has ended may wait for somebody to look at it.
    let look = "for id; do [ ! -e /proc/$id ] || grep -q '^State:.Z' /proc/$id/status || exit 1; done";
    let next = broker.submit(&[], &["sh", "-c", look, "sh", &leader.to_string(), &child.to_string()]);
    broker.run(&["job", "cancel", &job.to_string(), "--yes"]).expect(0);
    assert_eq!(broker.wait_for_job(next), 0, "the slot is free when the group is gone, not before");
    assert!(!alive(leader) && !alive(child));
    assert_eq!(broker.task_counts(job), [0, 0, 0, 0, 1]);
}

/// Half of an array is cancelled while its tasks run and wait: each has one end.
#[test]
fn half_an_array_is_cancelled() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "4"]);
    let script = "touch began.$TURNO_TASK_ID; while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done";
    let job = broker.submit(&["--array", "1-40"], &["sh", "-c", script]);
    wait::until("four tasks run", || (1..=4).all(|task| broker.place.path().join(format!("began.{task}")).exists()));
    broker.run(&["job", "cancel", &format!("{job}.3-22"), "--yes"]).expect(0);
    broker.place.file("go", "");
    assert_eq!(broker.wait_for_job(job), 1);
    assert_eq!(broker.task_counts(job), [0, 0, 20, 0, 20]);
}

/// Slots are one a core unless they are said, and never none; a task of several takes so many.
#[test]
fn slots_are_counted() {
    let broker = Broker::start();
    let mut job_worker = broker.job_worker(&["--slots", "auto", "--name", "auto"]);
    let cores = std::thread::available_parallelism().unwrap().get();
    let shown = broker.run(&["worker", "show", "auto", "--json"]).expect(0).document("turno.worker/1");
    assert_eq!(shown["worker"]["slots"], cores);
    job_worker.signal(rustix::process::Signal::TERM);
    assert_eq!(job_worker.end(wait::PATIENCE), 0);
    for bad in ["0", "65535", "many", "-1"] {
        broker.run(&["worker", "start", "--slots", bad]).expect(2);
    }
    let _job_worker = broker.job_worker(&["--slots", "3"]);
    let script =
        "echo x >> began; while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done; [ $(wc -l < began) -le 3 ]";
    let wide = broker.submit(&["--array", "1-4", "--slots", "2"], &["sh", "-c", script]);
    wait::until("one of two slots runs, and there is no room for another", || broker.task_counts(wide)[1] == 1);
    assert_eq!(broker.written("began"), "x");
    broker.place.file("go", "");
    broker.wait_for_job(wide);
    assert_eq!(broker.written("began").lines().count(), 4);
}
