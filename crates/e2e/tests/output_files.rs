//! Files that tasks are given and bring back, and output that goes to files at the worker.

use std::fs;
use std::os::unix::fs::symlink;

use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{Work, WorkFile};

fn peer(broker: &Broker) -> Peer {
    Peer::greeted(broker.address(), 60_000)
}

fn shell(script: &str) -> Work {
    Work { argv: ["sh", "-c", script].map(str::to_owned).to_vec(), ..Work::default() }
}

fn given(name: &str, upload: UploadId) -> WorkFile {
    WorkFile { name: name.to_owned(), upload, executable: false }
}

/// The status of a job's first task.
fn status(broker: &Broker, job: u64) -> String {
    assert_eq!(broker.wait_for_job(job), 1);
    broker.tasks(job)[0]["status"].as_str().expect("a failure has a status").to_owned()
}

/// Uploads are there, runnable and readable, in a directory that is the task's own; results come back; nothing is left.
#[test]
fn files_go_to_tasks_and_come_back() {
    let broker = Broker::start();
    let work_dir = broker.place.path().join("work");
    let mut job_worker = broker.job_worker(&["--slots", "3", "--work-dir", work_dir.to_str().unwrap()]);
    let mut peer = peer(&broker);
    let input: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let program = peer.upload(b"#!/bin/sh\ncat data/input.txt; cat\n");
    let data = peer.upload(input.as_bytes());
    let words = peer.upload(b"from stdin\n");
    let script = "mkdir out; ./prog > out/$TURNO_TASK_ID.txt; echo spoilt > data/input.txt; : > out/empty";
    let work = Work {
        files: vec![WorkFile { executable: true, ..given("prog", program) }, given("data/input.txt", data)],
        stdin: Some(words),
        collect: vec!["out/*".to_owned()],
        ..shell(script)
    };
    let job = peer.submit_work(6, &work, &[program, data, words]);
    assert_eq!(broker.wait_for_job(job), 0);
    let wanted = format!("{input}from stdin\n");
    let back = broker.place.path().join("back");
    broker.run(&["job", "result", &job.to_string(), "--dir", back.to_str().unwrap()]).expect(0);
    for task in 1..=6 {
        let out = back.join(format!("{task}/out"));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
        assert!(fs::read_to_string(out.join(format!("{task}.txt"))).unwrap() == wanted, "task {task}");
        assert_eq!(fs::read(out.join("empty")).unwrap(), b"");
    }
    job_worker.signal(rustix::process::Signal::TERM);
    assert_eq!(job_worker.end(wait::PATIENCE), 0);
    assert_eq!(fs::read_dir(&work_dir).unwrap().count(), 0, "nothing is left");
}

/// What cannot be given or brought back fails the task, in words; what failed by itself keeps its own.
#[test]
fn what_cannot_be_given_or_brought_back_is_said() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "2"]);
    let mut peer = peer(&broker);
    let nowhere = UploadId([7; 32]);
    let collect = |pattern: &str, script: &str| Work { collect: vec![pattern.to_owned()], ..shell(script) };
    let secret = "ln -s /etc/passwd secret";
    for (work, wanted) in [
        (collect("results/*.csv", "true"), "nothing matches results/*.csv"),
        (collect("secret", secret), "secret points out of the task's directory"),
        (collect("../*", "true"), "a pattern must be relative to the task's directory: ../*"),
        (collect("results/*.csv", "exit 3"), "exit 3"),
        (
            Work { files: vec![given("a", nowhere)], ..shell("true") },
            "a: cannot fetch an upload (070707070707): not found",
        ),
        (
            Work { files: vec![given("a", nowhere)], cwd: "/".to_owned(), ..shell("true") },
            "a task with uploads uses its own directory: omit --cwd",
        ),
    ] {
        let job = peer.submit_work(1, &work, &[]);
        assert_eq!(status(&broker, job), wanted);
    }
}

/// Output goes to files at the worker, and nothing of it to the broker. A full disk ends that task alone.
#[test]
fn output_goes_to_a_directory_at_the_worker() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "2"]);
    let mut peer = peer(&broker);
    let out = broker.place.path().join("logs/here");
    let work = |script: &str| Work { out_dir: out.display().to_string(), ..shell(script) };
    let job = peer.submit_work(3, &work("echo out $TURNO_TASK_ID; echo err >&2"), &[]);
    assert_eq!(broker.wait_for_job(job), 0);
    for task in 1..=3 {
        let read = |end: &str| fs::read_to_string(out.join(format!("{job}/{task}.1.{end}"))).expect("a file");
        assert_eq!((read("stdout"), read("stderr")), (format!("out {task}\n"), "err\n".to_owned()));
    }
    assert_eq!(peer.output(job), []);

    let next = out.join((job + 1).to_string());
    fs::create_dir(&next).unwrap();
    symlink("/dev/full", next.join("1.1.stdout")).unwrap();
    let full = peer.submit_work(1, &work("echo x; exec sleep 600"), &[]);
    let wanted = format!("cannot write {}: no space left on device", next.join("1.1.stdout").display());
    assert_eq!(status(&broker, full), wanted);

    let nowhere = Work { out_dir: "/dev/null/x".to_owned(), ..shell("true") };
    let nowhere = peer.submit_work(1, &nowhere, &[]);
    assert_eq!(status(&broker, nowhere), format!("cannot make the directory /dev/null/x/{nowhere}: not a directory"));
    let job = peer.submit_work(1, &shell("echo still here"), &[]);
    assert_eq!(broker.wait_for_job(job), 0);
    assert_eq!(broker.printed(job, 1).0, "still here\n");
}

/// A worker whose disk is full says so of tasks that are given files, and goes on with others.
#[test]
fn a_worker_whose_disk_is_full_says_so() {
    let broker = Broker::start();
    // What the worker may write to a file is less than what the task is given, as if the disk were full.
    let mut command = broker.place.command("sh");
    let program = format!("ulimit -f 64; trap '' XFSZ; exec turno worker start --slots 1 --url {}", broker.url());
    command.args(["-c", &program]);
    let job_worker = turno_e2e::Background::start(command);
    job_worker.expect_line("registered");
    let mut peer = peer(&broker);
    let large = peer.upload(&vec![7; 300_000]);
    let job = peer.submit_work(1, &Work { files: vec![given("large", large)], ..shell("true") }, &[large]);
    let said = status(&broker, job);
    assert!(said.starts_with("large: cannot write ") && said.ends_with(": file too large"), "{said}");
    let small = peer.upload(b"small");
    let job = peer.submit_work(1, &Work { files: vec![given("small", small)], ..shell("cat small") }, &[small]);
    assert_eq!(broker.wait_for_job(job), 0);
    assert_eq!(broker.printed(job, 1).0, "small");
}
