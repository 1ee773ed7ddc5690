//! The life of `turno worker start`: it is found out, it loses its broker, it is asked to end, it is killed.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::process::alive;
use turno_e2e::{Background, Broker, Place, schema, wait};

const LONG: Duration = wait::PATIENCE;

/// A task that says that it runs, and ends when the file `go` is there.
const PATIENT: &str = "echo $$ > new.$TURNO_TASK_ID; mv new.$TURNO_TASK_ID pid.$TURNO_TASK_ID.$TURNO_ATTEMPT; \
                       while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done";
/// The same, and it does not listen to TERM.
const STUBBORN: &str = "trap '' TERM; echo $$ > new.$TURNO_TASK_ID; \
                        mv new.$TURNO_TASK_ID pid.$TURNO_TASK_ID.$TURNO_ATTEMPT; \
                        while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done";

fn end(job_worker: &mut Background) -> i32 {
    job_worker.end(LONG)
}

/// The processes that a process started itself.
fn children(of: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// A worker says when it is ready and with what, and the broker's status says where it got its tasks.
#[test]
fn a_worker_says_what_it_is() {
    let broker = Broker::start();
    let flags = ["--name", "node-3", "--slots", "2", "--label", "gpu=a100", "--pool", "render"];
    let job_worker = broker.job_worker(&flags);
    let foreman = broker.foreman().to_string();
    let ready = schema::document(&job_worker.stdout()[0]);
    assert_eq!((&ready["name"], &ready["slots"]), (&"node-3".into(), &2.into()));
    assert_eq!(ready["labels"], serde_json::json!({"gpu": "a100", "pool": "render"}));
    assert_eq!((&ready["foreman"], &ready["broker"]), (&foreman.clone().into(), &broker.url().into()));
    assert_eq!(broker.status()["foreman"], foreman);
    let line = job_worker.expect_line("registered: ");
    assert_eq!(line, format!("node-3 registered: jobs, slots 2, labels gpu=a100, pool=render, foreman at {foreman}"));
    for bad in [&["--label", "gpu"][..], &["--label", "=x"], &["--queue", "q"], &["--foreman", "here"], &["--", "true"]]
    {
        broker.run(&[&["worker", "start"], bad].concat()).expect(2);
    }
}

/// A worker that finds no broker, or no foreman there, does not start.
#[test]
fn without_a_foreman_a_worker_does_not_start() {
    let place = Place::new();
    let nobody = place.run(["worker", "start", "--url", "turno://127.0.0.1:1", "--json"]).expect(5);
    assert_eq!(nobody.error_code(), "cannot_connect");
    let nobody = place.run(["worker", "start", "--foreman", "127.0.0.1:1", "--json"]).expect(5);
    assert_eq!(nobody.error_code(), "cannot_connect");
    let broker = Broker::start();
    let native = broker.address().to_string();
    let wrong = broker.run(&["worker", "start", "--foreman", &native, "--json"]).expect(5);
    assert_eq!(wrong.error_code(), "cannot_connect");
}

/// Proves S4.63, S4.76, S4.77 with real processes: tasks go on while the broker is away, what ended meanwhile is told
/// afterwards, and nothing is started twice.
#[test]
fn tasks_outlive_a_killed_broker() {
    let mut broker = Broker::start_with(&["--foreman-listen", "127.0.0.1:0"]);
    let job_worker = broker.job_worker(&["--slots", "3"]);
    let script = format!("{PATIENT}; [ ! -e go.$TURNO_TASK_ID ] || exit 7");
    let job = broker.submit(&["--array", "1-6"], &["sh", "-c", &script]);
    let ids = [1, 2, 3].map(|task| broker.written_id(&format!("pid.{task}.1")));
    broker.kill();
    job_worker.expect_line("connection to the broker lost");
    broker.place.file("go", "");
    wait::until("all three have ended without a broker", || ids.iter().all(|id| !alive(*id)));
    let (address, foreman) = (broker.address().to_string(), broker.foreman().to_string());
    let broker = Broker::start_in_at(broker.into_place(), &address, &["--foreman-listen", &foreman]);
    job_worker.expect_line("registered again");
    assert_eq!(broker.wait_for_job(job), 0);
    assert_eq!(broker.task_counts(job), [0, 0, 6, 0, 0]);
    let tasks = broker.tasks(job);
    assert!(tasks.iter().all(|task| task["attempt"] == 1), "nothing was started twice: {tasks:?}");
}

/// A broker that comes back with another port for its job workers is found all the same.
#[test]
fn a_foreman_that_moved_is_found() {
    let mut broker = Broker::start();
    let job_worker = broker.job_worker(&["--slots", "1"]);
    let job = broker.submit(&[], &["sh", "-c", PATIENT]);
    broker.written_id("pid.1.1");
    let (address, before) = (broker.address().to_string(), broker.foreman());
    broker.kill();
    job_worker.expect_line("connection to the broker lost");
    let broker = Broker::start_in_at(broker.into_place(), &address, &["--foreman-listen", "127.0.0.1:0"]);
    assert_ne!(broker.foreman(), before);
    job_worker.expect_line("registered again");
    broker.place.file("go", "");
    assert_eq!(broker.wait_for_job(job), 0);
    assert_eq!(broker.tasks(job)[0]["attempt"], 1);
}

/// Proves U33, S4.51, S4.79: asked to end, a worker takes nothing new, finishes what it has, and leaves with 0.
#[test]
fn a_worker_drains() {
    for signal in [Signal::TERM, Signal::INT] {
        let broker = Broker::start();
        let mut job_worker = broker.job_worker(&["--slots", "2"]);
        let job = broker.submit(&["--array", "1-4"], &["sh", "-c", PATIENT]);
        for task in [1, 2] {
            broker.written_id(&format!("pid.{task}.1"));
        }
        job_worker.signal(signal);
        job_worker.expect_line("2 still running, waiting 5m; press Ctrl-C again to stop immediately");
        broker.place.file("go", "");
        assert_eq!(end(&mut job_worker), 0);
        assert_eq!(broker.task_counts(job), [2, 0, 2, 0, 0], "what ran is finished, and nothing else was begun");
    }
}

/// What does not end in time is ended, and another worker gets it at once: it has not failed.
#[test]
fn a_drain_that_takes_too_long_is_cut() {
    let broker = Broker::start();
    let mut job_worker = broker.job_worker(&["--slots", "2", "--drain-timeout", "100ms"]);
    let job = broker.submit(&["--array", "1-2"], &["sh", "-c", PATIENT]);
    let ids = [1, 2].map(|task| broker.written_id(&format!("pid.{task}.1")));
    job_worker.signal(Signal::TERM);
    assert_eq!(end(&mut job_worker), 0);
    assert!(ids.iter().all(|id| !alive(*id)));
    assert_eq!(broker.task_counts(job), [2, 0, 0, 0, 0]);
    broker.place.file("go", "");
    let _next = broker.job_worker(&["--slots", "2"]);
    assert_eq!(broker.wait_for_job(job), 0);
    assert!(broker.tasks(job).iter().all(|task| task["attempt"] == 2));
}

/// The second signal does not wait for anybody, not for a task that ignores TERM either.
#[test]
fn a_second_signal_ends_at_once() {
    let broker = Broker::start();
    let mut job_worker = broker.job_worker(&["--slots", "1"]);
    let job = broker.submit(&[], &["sh", "-c", STUBBORN]);
    let id = broker.written_id("pid.1.1");
    job_worker.signal(Signal::TERM);
    job_worker.expect_line("1 still running");
    job_worker.signal(Signal::TERM);
    job_worker.expect_line("1 unfinished");
    assert_eq!(end(&mut job_worker), 143);
    assert!(!alive(id));
    assert_eq!(broker.task_counts(job), [1, 0, 0, 0, 0], "given back at once");
}

/// A worker is resized: the answer tells the new number, what runs runs on, and it grows again up to what it started with.
#[test]
fn workers_are_resized() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "3", "--name", "w"]);
    let job = broker.submit(&["--array", "1-9"], &["sh", "-c", PATIENT]);
    let first = [1, 2, 3].map(|task| broker.written_id(&format!("pid.{task}.1")));
    let resize = |slots: &str| broker.run(&["worker", "resize", "w", slots]);
    let run = resize("1").expect(0);
    assert!(run.text().contains("(w): slots 1\n"), "{}", run.text());
    assert!(run.stderr.contains("slots above the new limit still in use: 2"), "{}", run.stderr);
    assert!(first.iter().all(|id| alive(*id)), "what runs runs on");
    let show = broker.run(&["worker", "show", "w"]).expect(0).text();
    assert!(show.contains("1 of 3") && show.contains(&format!("task {job}.2 ")), "{show}");
    for slots in ["4", "unlimited"] {
        let run = resize(slots).expect(2);
        assert!(run.stderr.contains("more slots than it started with (3)"), "{}", run.stderr);
    }
    assert!(resize("3").expect(0).text().contains("(w): slots 3\n"));
    broker.place.file("go", "");
    assert_eq!(broker.wait_for_job(job), 0);
}

/// `turno drain` waits for tasks of jobs as it does for messages, and says what still runs.
#[test]
fn a_drain_waits_for_tasks() {
    let mut broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "2"]);
    let job = broker.submit(&["--array", "1-4"], &["sh", "-c", PATIENT]);
    [1, 2].iter().for_each(|task| drop(broker.written(&format!("pid.{task}.1"))));
    let run = broker.run(&["drain", "--timeout", wait::SHORT]).expect(124);
    assert!(run.stderr.contains("still running: 2 tasks"), "{}", run.stderr);
    let status = broker.run(&["status"]).expect(0).text();
    for expected in ["draining for maintenance", "1, 1 unfinished, 2 tasks running", " free of "] {
        assert!(status.contains(expected), "{expected}: {status}");
    }
    let data = broker.unix().parent().expect("a directory").display().to_string();
    assert_eq!(broker.status()["data"], data.as_str());
    let begun = broker.process().expect_line("draining for maintenance");
    assert!(begun.contains("in_flight=0 tasks=2"), "{begun}");
    assert!(!broker.process().stderr().iter().any(|line| line.contains("nothing is running")), "two tasks run");
    broker.place.file("go", "");
    assert!(broker.run(&["drain"]).expect(0).text().contains("nothing is running"));
    broker.process().expect_line("drained: nothing is running");
    assert_eq!(broker.task_counts(job), [2, 0, 2, 0, 0]);
    broker.run(&["resume"]).expect(0);
    assert_eq!(broker.wait_for_job(job), 0);
}

/// The tasks of a worker that was killed say that it is lost, and until when they wait for it; how long that is can be set.
#[test]
fn a_lost_worker_is_told_of() {
    let broker = Broker::start_with(&["--worker-grace", "10m"]);
    let mut job_worker = broker.job_worker(&["--slots", "2"]);
    let job = broker.submit(&["--array", "1-2"], &["sh", "-c", PATIENT]);
    [1, 2].iter().for_each(|task| drop(broker.written(&format!("pid.{task}.1"))));
    assert_eq!((broker.job(job)["lost"].as_u64(), &broker.tasks(job)[0]["lost_until"]), (Some(0), &Value::Null));
    job_worker.signal(Signal::KILL);
    assert_eq!(end(&mut job_worker), 137);
    wait::until("the broker notices", || broker.job(job)["lost"] == 2);
    let text = broker.run(&["job", "tasks", &job.to_string()]).expect(0).text();
    assert_eq!(text.matches("worker lost, waiting until ").count(), 2, "{text}");
    assert_eq!((&broker.status()["jobs"]["tasks_lost"], broker.task_counts(job)[1]), (&2.into(), 2));

    let broker = Broker::start_with(&["--worker-grace", "100ms"]);
    let mut job_worker = broker.job_worker(&["--slots", "1"]);
    let job = broker.submit(&[], &["sh", "-c", PATIENT]);
    broker.written_id("pid.1.1");
    job_worker.signal(Signal::KILL);
    assert_eq!(end(&mut job_worker), 137);
    let _other = broker.job_worker(&["--slots", "1"]);
    broker.written_id("pid.1.2");
    broker.place.file("go", "");
    assert_eq!(broker.wait_for_job(job), 0);
}

/// A machine that works for queues and for jobs is one worker, with what it does of either kind.
#[test]
fn one_machine_is_listed_once() {
    let broker = Broker::start();
    let _both = broker.job_worker(&["--slots", "2", "--name", "both", "--queue", "q", "--", "cat"]);
    let _queue = broker.worker(&["other", "--echo", "--name", "queue"]);
    let _job = broker.job_worker(&["--slots", "1", "--name", "job"]);
    let seen = || {
        let listed = broker.run(&["worker", "ls", "--json"]).expect(0).document("turno.worker_list/1");
        let mut seen: Vec<(String, String, usize)> = Vec::new();
        for worker in listed["workers"].as_array().expect("a list") {
            let text = |key: &str| worker[key].as_str().expect("a text").to_owned();
            seen.push((text("name"), text("kind"), worker["queues"].as_array().expect("a list").len()));
        }
        seen.sort();
        seen
    };
    let expected = [("both", "both", 1), ("job", "job", 0), ("queue", "queue", 1)];
    let expected = expected.map(|(name, kind, queues)| (name.to_owned(), kind.to_owned(), queues));
    wait::until("all are there, each once", || seen() == expected);
    assert_eq!(broker.run(&["request", "q", "hi"]).expect(0).text(), "hi");
}

/// A job that depends on one that has failed is cancelled, and the submitter learns the reason at once.
#[test]
fn a_job_after_one_that_failed_says_so() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "1"]);
    let first = broker.submit(&[], &["false"]);
    assert_eq!(broker.wait_for_job(first), 1);
    let run = broker.run(&["job", "submit", "--after", &first.to_string(), "--", "true"]).expect(1);
    let why = format!("it depends on job {first}, which did not finish");
    assert!(run.stderr.contains(&format!("cancelled: {why}")), "{}", run.stderr);
    let run = broker.run(&["job", "wait", "last"]).expect(1);
    assert!(run.text().contains(&why) || run.stderr.contains(&why), "{} {}", run.text(), run.stderr);
    let run = broker.run(&["job", "explain", "last"]).expect(0);
    assert!(run.text().contains(&why), "{}", run.text());
}

/// Proves S4.60 with real processes: a worker is stopped after what it has, and stopped at once.
#[test]
fn workers_are_steered() {
    let broker = Broker::start();
    let mut calm = broker.job_worker(&["--slots", "3", "--name", "calm"]);
    let job = broker.submit(&["--array", "1-9"], &["sh", "-c", PATIENT]);
    let first = [1, 2, 3].map(|task| broker.written_id(&format!("pid.{task}.1")));
    let mut stop = broker.start_turno(&["worker", "stop", "calm"]);
    calm.expect_line("`turno worker stop`: 3 still running");
    assert!(first.iter().all(|id| alive(*id)), "what runs runs on");
    broker.place.file("go", "");
    assert_eq!((stop.end(LONG), end(&mut calm)), (0, 0));
    assert_eq!(broker.task_counts(job), [6, 0, 3, 0, 0]);

    std::fs::remove_file(broker.place.path().join("go")).unwrap();
    let mut hasty = broker.job_worker(&["--slots", "2", "--name", "hasty"]);
    let ids = [4, 5].map(|task| broker.written_id(&format!("pid.{task}.1")));
    broker.run(&["worker", "stop", "hasty", "--now", "--yes"]).expect(0);
    assert_eq!(end(&mut hasty), 0);
    assert!(ids.iter().all(|id| !alive(*id)), "its tasks are killed");
    assert_eq!(broker.task_counts(job), [6, 0, 3, 0, 0], "and wait for another worker");
    broker.place.file("go", "");
    let _next = broker.job_worker(&["--slots", "2"]);
    assert_eq!(broker.wait_for_job(job), 0);
}

/// A worker that is killed leaves nothing running, its directory neither; another runs its tasks again.
#[test]
fn a_killed_worker_leaves_nothing_running() {
    let broker = Broker::start();
    let work_dir = broker.place.path().join("work").display().to_string();
    let mut job_worker = broker.job_worker(&["--slots", "2", "--work-dir", &work_dir]);
    let script = format!(
        "setsid sh -c 'echo $$ > escaped.$TURNO_TASK_ID; while [ -d \"$PWD\" ]; do sleep 0.05; done' & {STUBBORN}"
    );
    let job = broker.submit(&["--array", "1-2"], &["sh", "-c", &script]);
    let mut ids = Vec::new();
    for task in [1, 2] {
        ids.push(broker.written_id(&format!("pid.{task}.1")));
        ids.push(broker.written_id(&format!("escaped.{task}")));
    }
    assert!(ids.iter().all(|id| alive(*id)));
    assert_eq!(std::fs::read_dir(&work_dir).unwrap().count(), 1);
    job_worker.signal(Signal::KILL);
    assert_eq!(end(&mut job_worker), 137);
    wait::until("nothing is left running", || ids.iter().all(|id| !alive(*id)));
    wait::until("nor a directory", || std::fs::read_dir(&work_dir).unwrap().count() == 0);
    assert_eq!(broker.task_counts(job)[1], 2, "the broker waits for the worker for a while");
}

/// A worker that ends in order leaves no watcher and no directory.
#[test]
fn a_worker_that_ends_leaves_nothing_of_its_own() {
    let broker = Broker::start();
    let work_dir = broker.place.path().join("work").display().to_string();
    let mut job_worker = broker.job_worker(&["--work-dir", &work_dir]);
    let guard = children(job_worker.id());
    assert_eq!(guard.len(), 1, "one watcher");
    job_worker.signal(Signal::TERM);
    assert_eq!(end(&mut job_worker), 0);
    wait::until("the watcher is gone", || !alive(guard[0]));
    assert_eq!(std::fs::read_dir(&work_dir).unwrap().count(), 0);
}

/// A watcher that was killed is replaced, and the next one knows what runs.
#[test]
fn a_watcher_is_replaced() {
    let broker = Broker::start();
    let mut job_worker = broker.job_worker(&["--slots", "2"]);
    let watcher = children(job_worker.id())[0];
    let job = broker.submit(&["--array", "1-2", "--max-parallel", "1"], &["sh", "-c", STUBBORN]);
    let first = broker.written_id("pid.1.1");
    let pid = rustix::process::Pid::from_raw(i32::try_from(watcher).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    wait::until("it is dead", || !alive(watcher));
    let other = broker.submit(&[], &["sh", "-c", "echo $$ > other; while [ -d \"$PWD\" ]; do sleep 0.05; done"]);
    let second = broker.written_id("other");
    wait::until("another watches", || {
        children(job_worker.id()).iter().any(|id| ![watcher, first, second].contains(id))
    });
    job_worker.signal(Signal::KILL);
    end(&mut job_worker);
    wait::until("nothing is left running", || !alive(first) && !alive(second));
    assert!(job < other);
}

/// With nothing to do for so long, a worker ends; while it has something, it does not.
#[test]
fn an_idle_worker_ends() {
    let broker = Broker::start();
    let mut idle = broker.job_worker(&["--idle-timeout", "50ms"]);
    idle.expect_line("nothing to do: ending");
    assert_eq!(end(&mut idle), 0);
    let job = broker.submit(&[], &["sh", "-c", PATIENT]);
    let mut busy = broker.job_worker(&["--idle-timeout", "3s"]);
    broker.written_id("pid.1.1");
    let other = broker.job_worker(&["--idle-timeout", "3s"]).end(LONG);
    assert_eq!(other, 0, "its time has passed for one that began later");
    assert!(busy.runs());
    broker.place.file("go", "");
    assert_eq!(end(&mut busy), 0);
    assert_eq!(broker.task_counts(job), [0, 0, 1, 0, 0]);
}

/// A worker that was started over a pipe ends in order when the pipe is closed.
#[test]
fn a_worker_ends_with_its_input() {
    let broker = Broker::start();
    let mut command = broker.turno(&["worker", "start", "--until-eof", "--slots", "1"]);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(reader));
    let mut job_worker = Background::start(command);
    job_worker.expect_line("registered");
    let job = broker.submit(&[], &["sh", "-c", PATIENT]);
    broker.written_id("pid.1.1");
    drop(writer);
    job_worker.expect_line("1 still running");
    broker.place.file("go", "");
    assert_eq!(end(&mut job_worker), 0);
    assert_eq!(broker.task_counts(job), [0, 0, 1, 0, 0]);
}

/// One account for tasks and messages: what one takes, the other has not.
#[test]
fn tasks_and_messages_share_the_slots() {
    let broker = Broker::start();
    let script =
        "echo $$ > message.new; mv message.new message; while [ -d \"$PWD\" ] && [ ! -e answer ]; do sleep 0.02; done";
    let mut job_worker =
        broker.job_worker(&["--slots", "1", "--name", "both", "--queue", "q", "--", "sh", "-c", script]);
    let job = broker.submit(&["--array", "1-2"], &["sh", "-c", PATIENT]);
    broker.written_id("pid.1.1");
    let mut asked = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    wait::until("the message waits", || broker.queue("q")["ready"] == 1);
    assert!(!broker.place.path().join("message").exists());
    broker.place.file("go", "");
    broker.written_id("message");
    broker.place.file("answer", "");
    assert_eq!(asked.end(LONG), 0);
    assert_eq!(broker.wait_for_job(job), 0);
    job_worker.signal(Signal::TERM);
    assert_eq!(end(&mut job_worker), 0);
    assert_eq!(broker.workers(), 0);
}

/// A worker without a place for directories says so.
#[test]
fn directories_that_are_not_there() {
    let broker = Broker::start();
    let file = broker.place.file("file", "").display().to_string();
    let refused = broker.run(&["worker", "start", "--work-dir", &file, "--json"]).expect(1);
    assert_eq!(refused.error_code(), "io");
}
