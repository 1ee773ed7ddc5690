//! Jobs and the foreman's protocol through the real broker, with workers that start no programs.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use turno_e2e::{Broker, JobWorker, Peer, wait};
use turno_proto::foreman::{Task, WireTaskId, WorkerEvent};
use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{Array, JobSpec};
use turno_proto::native::Frame;

fn submit(broker: &Broker, flags: &[&str]) -> u64 {
    let arguments = [&["job", "submit", "--json"], flags, &["--", "true"]].concat();
    let job = broker.run(&arguments).expect(0).document("turno.job/1");
    job["job"]["id"].as_str().and_then(|id| id.parse().ok()).expect("a job has a number")
}

fn job(broker: &Broker, id: u64) -> Value {
    broker.run(&["job", "show", &id.to_string(), "--json"]).expect(0).document("turno.job/1")["job"].clone()
}

fn counts(job: &Value) -> [u64; 5] {
    ["waiting", "running", "finished", "failed", "cancelled"].map(|state| job[state].as_u64().expect("a count"))
}

fn ids(tasks: &[Task]) -> Vec<u32> {
    tasks.iter().map(|task| task.task).collect()
}

/// Proves S4.49, S4.70: who connects is greeted by OK(0), byte for byte.
#[test]
fn the_foreman_speaks_first() {
    let broker = Broker::start();
    let mut socket = TcpStream::connect(broker.foreman()).unwrap();
    let mut banner = [0; 16];
    socket.read_exact(&mut banner).unwrap();
    assert_eq!(banner, *b"\x47\xc0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

/// Proves S4.71, S4.73, S4.82: an array is worked off by workers of different sizes, each task once.
#[test]
fn an_array_is_worked_off_by_several_workers() {
    let broker = Broker::start();
    let done = AtomicBool::new(false);
    let ran: Vec<WireTaskId> = std::thread::scope(|scope| {
        let workers: Vec<_> = [("small", 1), ("wide", 7)]
            .into_iter()
            .map(|(name, procs)| {
                let (foreman, done) = (broker.foreman(), &done);
                scope.spawn(move || JobWorker::start(foreman, name, procs).work_until(|| done.load(Ordering::Relaxed)))
            })
            .collect();
        let id = submit(&broker, &["--array", "1-200", "--name", "two hundred"]);
        broker.run(&["job", "wait", &id.to_string()]).expect(0);
        assert_eq!(counts(&job(&broker, id)), [0, 0, 200, 0, 0]);
        done.store(true, Ordering::Relaxed);
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut tasks: Vec<u32> = ran.iter().map(|id| id.task).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, (1..=200).collect::<Vec<_>>());
}

/// Proves S4.63, S4.76, S4.77: a broker that was killed knows each finished task; what ran meanwhile is kept, and an end
/// that happened while it was away is counted once.
#[test]
fn a_killed_broker_goes_on_where_it_was() {
    let mut broker = Broker::start_with(&["--foreman-listen", "127.0.0.1:0"]);
    let foreman = broker.foreman();
    let mut worker = JobWorker::start(foreman, "w", 3);
    let id = submit(&broker, &["--array", "1-6"]);
    let first = worker.tasks();
    assert_eq!(ids(&first), [1, 2, 3]);
    assert!(first.iter().all(|task| task.attempt == 1 && task.argv == ["true"]));
    worker.end(first[0].id(), 0);
    worker.reported(first[0].id());
    let fourth = worker.tasks();
    assert_eq!(ids(&fourth), [4]);

    broker.kill();
    worker.cut();
    worker.end(first[1].id(), 0);
    let address = broker.address().to_string();
    let broker = Broker::start_in_at(broker.into_place(), &address, &["--foreman-listen", &foreman.to_string()]);
    assert_eq!(counts(&job(&broker, id)), [2, 3, 1, 0, 0], "tasks 2, 3 and 4 stay with their worker");
    worker.connect(broker.foreman());
    worker.reported(first[1].id());
    worker.end(first[2].id(), 7);
    worker.end(fourth[0].id(), 0);
    worker.reported(fourth[0].id());
    let mut attempts: BTreeMap<u32, u32> = BTreeMap::new();
    while attempts.len() < 2 {
        for task in worker.tasks() {
            *attempts.entry(task.task).or_default() += task.attempt;
            worker.end(task.id(), 0);
        }
    }
    assert_eq!(attempts, BTreeMap::from([(5, 1), (6, 1)]), "nothing is started twice");
    // Ends are told one by one, and only while the worker has its turn.
    for task in [5, 6] {
        worker.reported(WireTaskId { job: id, task });
    }
    broker.run(&["job", "wait", &id.to_string()]).expect(1);
    assert_eq!(counts(&job(&broker, id)), [0, 0, 5, 1, 0]);
}

/// Proves S4.55, S4.56: waiting tasks are cancelled at once, running ones when their worker has stopped them; the slot is
/// free once.
#[test]
fn half_an_array_is_cancelled() {
    let broker = Broker::start();
    let mut worker = JobWorker::start(broker.foreman(), "w", 2);
    let id = submit(&broker, &["--array", "1-10"]);
    let running = worker.tasks();
    assert_eq!(ids(&running), [1, 2]);
    broker.run(&["job", "cancel", &format!("{id}.2-6"), "--yes"]).expect(0);
    assert_eq!(worker.cancelled(), [running[1].id()]);
    wait::until("2 is cancelled once its worker has confirmed, 3 to 6 at once", || counts(&job(&broker, id))[4] == 5);
    worker.end(running[1].id(), 143);
    assert_eq!(ids(&worker.tasks()), [7], "one processor is free");
    worker.end(running[0].id(), 0);
    assert_eq!(ids(&worker.tasks()), [8]);
}

/// Proves S4.57, S4.60, S4.74, S4.75: a worker is asked to end after what it has, or at once.
#[test]
fn workers_are_stopped() {
    let broker = Broker::start();
    let mut calm = JobWorker::start(broker.foreman(), "calm", 2);
    let id = submit(&broker, &["--array", "1-4"]);
    let tasks = calm.tasks();
    let mut stop = broker.start_turno(&["worker", "stop", "calm"]);
    calm.until("a STOP", |event| matches!(event, WorkerEvent::Stopping { max: 0 }).then_some(()));
    for task in &tasks {
        calm.end(task.id(), 0);
    }
    calm.until("the exit", |event| matches!(event, WorkerEvent::Exit).then_some(()));
    drop(calm);
    assert_eq!(stop.end(wait::PATIENCE), 0);
    assert_eq!(counts(&job(&broker, id)), [2, 0, 2, 0, 0], "it is offered nothing more");

    let mut hasty = JobWorker::start(broker.foreman(), "hasty", 2);
    assert_eq!(ids(&hasty.tasks()), [3, 4]);
    let mut stop = broker.start_turno(&["worker", "stop", "hasty", "--now", "--yes"]);
    hasty.until("the exit", |event| matches!(event, WorkerEvent::ExitNow).then_some(()));
    drop(hasty);
    assert_eq!(stop.end(wait::PATIENCE), 0);
    let mut third = JobWorker::start(broker.foreman(), "third", 2);
    let again = third.tasks();
    assert_eq!(ids(&again), [3, 4], "what was cut short is run again, at once");
    assert!(again.iter().all(|task| task.attempt == 2));
}

/// A job is held, released, listed, looked at task by task, and removed when it has ended.
#[test]
fn a_job_is_steered() {
    let broker = Broker::start();
    let id = submit(&broker, &["--array", "10-30:10", "--hold", "--retries", "1", "--name", "steered"]);
    let text = id.to_string();
    let mut worker = JobWorker::start(broker.foreman(), "w", 2);
    let held = job(&broker, id);
    assert_eq!((held["state"].as_str(), counts(&held)), (Some("held"), [3, 0, 0, 0, 0]));
    assert_eq!(broker.run(&["job", "rm", &text, "--yes", "--json"]).expect(1).error_code(), "job_not_ended");
    broker.run(&["job", "release", &text]).expect(0);
    let first = worker.tasks();
    assert_eq!(ids(&first), [10, 20]);
    broker.run(&["job", "hold", &text]).expect(0);
    worker.end(first[0].id(), 3);
    worker.reported(first[0].id());
    worker.end(first[1].id(), 0);
    worker.reported(first[1].id());
    assert_eq!(counts(&job(&broker, id)), [2, 0, 1, 0, 0], "nothing is started, and 10 has another attempt");
    broker.run(&["job", "release", &text]).expect(0);
    let again = worker.tasks();
    assert_eq!((ids(&again), again[0].attempt, again[1].attempt), (vec![10, 30], 2, 1));
    worker.end(again[0].id(), 3);
    worker.end(again[1].id(), 0);
    worker.reported(again[1].id());
    broker.run(&["job", "wait", &text]).expect(1);
    let tasks = broker.run(&["job", "tasks", &text, "--json"]).expect(0).document("turno.task_list/1");
    let seen: Vec<_> =
        tasks["tasks"].as_array().expect("a list").iter().map(|task| (&task["task"], &task["state"])).collect();
    let states = [(10, "failed"), (20, "finished"), (30, "finished")];
    assert_eq!(seen.len(), 3);
    for ((task, state), (number, word)) in seen.into_iter().zip(states) {
        assert_eq!((task.to_string().trim_matches('"'), state.as_str()), (number.to_string().as_str(), Some(word)));
    }
    let listed = broker.run(&["job", "ls", "--json"]).expect(0).document("turno.job_list/1");
    assert_eq!(listed["jobs"][0]["name"], "steered");
    broker.run(&["job", "rm", &text, "--yes"]).expect(0);
    assert_eq!(broker.run(&["job", "show", &text, "--json"]).expect(4).error_code(), "not_found");
}

/// Tasks that failed run again in their job, with attempts that rise, after kill -9 as well; so does one that is named.
#[test]
fn what_failed_is_retried() {
    let broker = Broker::start();
    let id = submit(&broker, &["--array", "1-3"]);
    let text = id.to_string();
    let mut worker = JobWorker::start(broker.foreman(), "w", 3);
    for (task, exit_code) in worker.tasks().into_iter().zip([0, 3, 4]) {
        worker.end(task.id(), exit_code);
        worker.reported(task.id());
    }
    broker.run(&["job", "wait", &text]).expect(1);
    worker.cut();
    let told = broker.run(&["job", "retry", &text, "--dry-run"]).expect(0);
    assert_eq!(told.text(), format!("job {id} (true): 2 tasks would wait again\n"));
    assert_eq!(counts(&job(&broker, id)), [0, 0, 1, 2, 0]);
    let told = broker.run(&["job", "retry", &text, "--failed"]).expect(0);
    assert_eq!(told.text(), format!("job {id} (true): 2 tasks wait again\n"));
    assert!(told.stderr.contains(&format!("turno job wait {id}")), "{}", told.stderr);

    let mut broker = broker;
    broker.kill();
    let address = broker.address().to_string();
    let broker = Broker::start_in_at(broker.into_place(), &address, &[]);
    let open = job(&broker, id);
    assert_eq!((counts(&open), &open["ended_at"]), ([2, 0, 1, 0, 0], &Value::Null));
    worker.connect(broker.foreman());
    let again = worker.tasks();
    assert!(ids(&again) == [2, 3] && again.iter().all(|task| task.attempt == 2), "{again:?}");
    for task in &again {
        worker.end(task.id(), 0);
        worker.reported(task.id());
    }
    broker.run(&["job", "wait", &text]).expect(0);
    let told = broker.run(&["job", "retry", &format!("{id}.1,9"), "--json"]).expect(0).document("turno.job_retry/1");
    assert_eq!((&told["jobs"][0]["tasks"], &told["dry_run"]), (&1.into(), &false.into()));
    let first = worker.tasks();
    assert_eq!((ids(&first), first[0].attempt), (vec![1], 2));
}

/// What the tasks of a job do must be readable before anybody is asked to do it.
#[test]
fn work_that_cannot_be_read_is_refused() {
    let broker = Broker::start();
    let mut client = Peer::greeted(broker.address(), 0);
    for work in [&b""[..], b"no map", &[0xdf, 0xff, 0xff, 0xff, 0xff], &[0x91; 10_000]] {
        let spec = JobSpec::new("n", Array::ONE, work.to_vec().into());
        client.say(&Frame::AdminCall { seq: 9, call: AdminCall::JobSubmit { spec: Box::new(spec) } });
        client.hear(|frame| assert!(matches!(frame, Frame::Error { seq: 9, code: Code::BadJob, fatal: false, .. })));
    }
    assert_eq!(
        broker.run(&["job", "ls", "--json"]).expect(0).document("turno.job_list/1")["jobs"],
        serde_json::json!([])
    );
}

/// Two brokers on one machine do not fight for the foreman's usual address.
#[test]
fn a_taken_usual_address_is_no_reason_to_fail() {
    let (one, other) = (Broker::start(), Broker::start());
    assert_ne!(one.foreman(), other.foreman());
    let address = one.foreman().to_string();
    let refused =
        one.place.run(["serve", "--listen", "127.0.0.1:0", "--memory", "--json", "--foreman-listen", &address]);
    assert_eq!(refused.expect(1).error_code(), "address_in_use");
    let open =
        one.place.run(["serve", "--listen", "127.0.0.1:0", "--memory", "--json", "--foreman-listen", "0.0.0.0:0"]);
    assert_eq!(open.expect(78).error_code(), "insecure_listen");
    wait::until("both brokers answer", || one.status().is_object() && other.status().is_object());
}
