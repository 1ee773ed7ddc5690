//! Output, results and uploads through the real broker, with workers that start no programs.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Broker, JobWorker, Peer, wait};
use turno_proto::foreman::Task;
use turno_proto::model::Code;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputStream, UploadId};
use turno_proto::model::job::JobId;
use turno_proto::model::limits::{OUTPUT_PIECES_MAX, PIECE_BYTES_MAX};
use turno_proto::native::Frame;

/// The SHA-256 of `hello`.
const HELLO: UploadId = UploadId([
    0x2c, 0xf2, 0x4d, 0xba, 0x5f, 0xb0, 0xa3, 0x0e, 0x26, 0xe8, 0x3b, 0x2a, 0xc5, 0xb9, 0xe2, 0x9e, 0x1b, 0x16, 0x1e,
    0x5c, 0x1f, 0xa7, 0x42, 0x5e, 0x73, 0x04, 0x33, 0x62, 0x93, 0x8b, 0x98, 0x24,
]);

fn submit(broker: &Broker, array: &str) -> u64 {
    let job = broker.run(&["job", "submit", "--json", "--array", array, "--", "true"]).expect(0);
    job.document("turno.job/1")["job"]["id"].as_str().and_then(|id| id.parse().ok()).expect("a job has a number")
}

fn piece(job: u64, task: u32, at: u64, bytes: impl Into<Vec<u8>>) -> OutputPiece {
    let bytes = bytes.into().into();
    OutputPiece { job: JobId(job), task, attempt: 1, stream: OutputStream::Stdout, at, live: false, bytes, lost: 0 }
}

fn to_stderr(piece: OutputPiece) -> OutputPiece {
    OutputPiece { stream: OutputStream::Stderr, ..piece }
}

/// A worker named `w` that hands things in.
struct OutputWorker {
    tasks: JobWorker,
    native: Peer,
}

/// Tasks that are looked at, and attempts that were refused.
type Kept = (Vec<(JobId, u32)>, Vec<(JobId, u32, u32)>);

impl OutputWorker {
    fn start(broker: &Broker, procs: u16) -> Self {
        Self { tasks: JobWorker::start(broker.foreman(), "w", procs), native: Peer::greeted(broker.address(), 0) }
    }

    fn hand_in(&mut self, pieces: Vec<OutputPiece>) -> Kept {
        match self.native.ask(AdminCall::TaskOutput { worker: "w".to_owned(), pieces }) {
            AdminAnswer::OutputKept { follow, refused, .. } => (follow, refused),
            other => panic!("another answer: {other:?}"),
        }
    }

    /// A piece of a file of task 1; how it was refused, if it was.
    fn file(&mut self, job: u64, name: &str, at: u64, last: bool, bytes: &[u8]) -> Result<(), Code> {
        let (worker, name, bytes) = ("w".to_owned(), name.to_owned(), bytes.to_vec().into());
        let call = AdminCall::TaskFile { worker, job: JobId(job), task: 1, attempt: 1, name, at, last, bytes };
        answer(&mut self.native, call).map(drop)
    }

    /// The next tasks, all of which are needed.
    fn take(&mut self, count: usize) -> Vec<Task> {
        let mut taken = Vec::new();
        while taken.len() < count {
            taken.extend(self.tasks.tasks());
        }
        taken
    }

    fn end(&mut self, task: &Task, exit_code: i32) {
        self.tasks.end(task.id(), exit_code);
        self.tasks.reported(task.id());
    }
}

fn answer(peer: &mut Peer, call: AdminCall) -> Result<AdminAnswer, Code> {
    peer.say(&Frame::AdminCall { seq: 77, call });
    peer.hear(|frame| match frame {
        Frame::AdminAnswer { answer, .. } => Ok(answer),
        Frame::Error { code, fatal: false, .. } => Err(code),
        other => panic!("no answer: {other:?}"),
    })
}

fn logs(broker: &Broker, flags: &[&str]) -> (String, String) {
    let run = broker.run(&[&["job", "logs", "-q"], flags].concat()).expect(0);
    (run.text(), run.stderr)
}

#[test]
fn output_is_shown_of_one_task_and_of_many() {
    for flags in [&[][..], &["--routers", "2"], &["--memory"]] {
        let broker = Broker::start_with(flags);
        let mut worker = OutputWorker::start(&broker, 3);
        let id = submit(&broker, "1-3");
        let tasks = worker.take(3);
        worker.hand_in(vec![piece(id, 1, 0, "one\ntw"), to_stderr(piece(id, 1, 6, "oops\n")), piece(id, 2, 0, "half")]);
        worker.hand_in(vec![piece(id, 1, 11, "o\n"), piece(id, 1, 5_000, "the end\n")]);
        worker.end(&tasks[1], 3);

        assert_eq!(
            logs(&broker, &["1.1"]),
            ("one\ntwo\nthe end\n".to_owned(), "oops\n… 4.87KiB left out …\n".to_owned())
        );
        assert_eq!(
            logs(&broker, &["last"]),
            (
                "1.1: one\n1.1: two\n1.1: the end\n1.2: half\n".to_owned(),
                "1.1: oops\n1.1: … 4.87KiB left out …\n".to_owned()
            )
        );
        assert_eq!(logs(&broker, &["1.1", "--stdout", "--tail", "2"]).0, "two\nthe end\n");
        assert_eq!(
            logs(&broker, &["1.1", "--stderr"]),
            ("oops\n".to_owned(), String::new()),
            "what was chosen is on stdout"
        );
        assert_eq!(logs(&broker, &["1", "--failed"]).0, "1.2: half\n");
        assert_eq!(logs(&broker, &["1.2-3", "--no-prefix"]).0, "half");
        assert_eq!(logs(&broker, &["1.3"]), (String::new(), String::new()));
        assert_eq!(logs(&broker, &["1.1", "--attempt", "2"]).0, "");
        assert_eq!(logs(&broker, &["1.2", "--attempt", "all"]).0, "attempt 1: half\n");
        assert_eq!(logs(&broker, &["1.2", "--attempt", "all", "--no-prefix"]).0, "half");
        let missing = broker.run(&["job", "logs", "1.9", "--json"]).expect(4);
        assert_eq!(missing.error_code(), "not_found", "a task that does not exist is an error");
        let document = broker.run(&["job", "logs", "1.1", "--json"]).expect(0).document("turno.output/1");
        let pieces = document["pieces"].as_array().unwrap();
        let told: Vec<&str> = pieces.iter().map(|piece| piece["body"].as_str().unwrap()).collect();
        assert_eq!(told, ["one\ntw", "oops\n", "o\n", "the end\n"]);
        assert_eq!((&pieces[1]["stream"], &pieces[3]["left_out"]), (&Value::from("stderr"), &Value::from(4_987)));
        let rows = broker.run(&["job", "logs", "1.1", "-o", "jsonl"]).expect(0).documents();
        assert!(rows.len() == 4 && rows.iter().all(|row| row["schema"] == "turno.output_row/1"), "{rows:?}");
        broker.run(&["job", "logs", "9"]).expect(4);
        broker.run(&["job", "logs", "1", "1.2", "-f", "--failed"]).expect(2);
    }
}

/// What comes from elsewhere than the task's worker is refused, and said to be.
#[test]
fn output_of_a_task_that_runs_elsewhere_is_refused() {
    let broker = Broker::start();
    let mut worker = OutputWorker::start(&broker, 1);
    let id = submit(&broker, "1-2");
    let tasks = worker.take(1);
    let strange = vec![piece(id, 2, 0, "not mine"), piece(id, 1, 0, "mine\n"), piece(99, 1, 0, "nobody's")];
    assert_eq!(worker.hand_in(strange).1, [(JobId(id), 2, 1), (JobId(99), 1, 1)]);
    assert_eq!(logs(&broker, &["1"]).0, "1.1: mine\n");
    assert_eq!(worker.file(99, "a", 0, true, b"a"), Err(Code::NotYourTask));
    assert_eq!(worker.file(id, "../../a", 0, true, b"a"), Err(Code::BadCall));
    assert_eq!(worker.file(id, "a", 5, true, b"a"), Err(Code::WrongPlace));
    worker.end(&tasks[0], 0);
    assert_eq!(worker.hand_in(vec![piece(id, 1, 5, "late")]).1, [(JobId(id), 1, 1)]);
    assert_eq!(worker.file(id, "a", 0, true, b"a"), Err(Code::NotYourTask));
    let many = vec![piece(id, 2, 0, "x"); OUTPUT_PIECES_MAX + 1];
    // More than a control map may hold is not even read.
    let refused = answer(&mut worker.native, AdminCall::TaskOutput { worker: "w".to_owned(), pieces: many });
    assert!(matches!(refused, Err(Code::BadCall | Code::BadBody)), "{refused:?}");
}

/// Whatever a worker sends of one task, the broker keeps its share.
#[test]
fn no_task_takes_more_than_its_share() {
    let broker = {
        let place = turno_e2e::Place::new();
        place.file("config/turno/turno.toml", "[jobs]\noutput-per-task = \"64KiB\"\n");
        Broker::start_in(place, &[])
    };
    let mut worker = OutputWorker::start(&broker, 1);
    let id = submit(&broker, "1-1");
    let tasks = worker.take(1);
    let body = vec![b'x'; PIECE_BYTES_MAX];
    for call in 0..200_u64 {
        assert_eq!(
            worker.hand_in(vec![piece(id, 1, call * body.len() as u64, body.clone())]),
            (Vec::new(), Vec::new())
        );
    }
    worker.end(&tasks[0], 0);
    assert_eq!(logs(&broker, &["1.1"]).0.len(), 2 * 64 * 1024);
    let files: Vec<u64> = archive(&broker).iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(files.iter().sum::<u64>() < 256 * 1024, "{files:?}");
}

fn archive(broker: &Broker) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(broker.data().join("archive")).expect("a broker has an archive");
    files.map(|file| file.expect("a file of it").path()).collect()
}

/// What was answered is there after the broker was killed.
#[test]
fn what_was_answered_outlives_a_kill() {
    let mut broker = Broker::start_with(&["--foreman-listen", "127.0.0.1:0"]);
    let mut worker = OutputWorker::start(&broker, 2);
    let id = submit(&broker, "1-2");
    worker.take(2);
    let mut at = 0;
    for number in 0..100 {
        let line = format!("line {number}\n");
        worker.hand_in(vec![piece(id, 1, at, line.clone())]);
        at += line.len() as u64;
    }
    worker.file(id, "a.txt", 0, false, b"whole ").unwrap();
    worker.file(id, "a.txt", 6, true, b"file").unwrap();
    worker.file(id, "b.txt", 0, false, b"half").unwrap();
    assert_eq!(put(&mut worker.native, HELLO, 5, 0, b"hello"), Ok(Vec::new()));
    let (before, _) = logs(&broker, &["1"]);
    assert_eq!(before.lines().count(), 100);
    let (native, foreman) = (broker.address(), broker.foreman());
    broker.kill();
    let flags = ["--foreman-listen".to_owned(), foreman.to_string()];
    let broker = Broker::start_in_at(broker.into_place(), &native.to_string(), &[flags[0].as_str(), flags[1].as_str()]);
    worker.native = Peer::greeted(broker.address(), 0);
    assert_eq!(logs(&broker, &["1"]).0, before);
    // The task runs on, and so does its output; what was sent and not answered may come again.
    assert_eq!(worker.hand_in(vec![piece(id, 1, at - 8, "line 99\n"), piece(id, 1, at, "after\n")]).1, []);
    assert_eq!(logs(&broker, &["1"]).0, before + "1.1: after\n");
    assert_eq!(worker.file(id, "b.txt", 4, true, b"?"), Err(Code::WrongPlace));
    assert_eq!(answer(&mut worker.native, AdminCall::UploadCheck { uploads: vec![HELLO] }), Ok(missing(&[])));
    let listed = broker.run(&["job", "result", "1", "--list", "--json"]).expect(0).document("turno.result_list/1");
    let files = listed["files"].as_array().unwrap();
    assert_eq!((files.len(), &files[0]["name"], &files[0]["bytes"]), (1, &"a.txt".into(), &10.into()));
}

fn missing(uploads: &[UploadId]) -> AdminAnswer {
    AdminAnswer::Uploads { missing: uploads.to_vec() }
}

fn put(peer: &mut Peer, upload: UploadId, size: u64, at: u64, bytes: &[u8]) -> Result<Vec<UploadId>, Code> {
    match answer(peer, AdminCall::UploadPut { upload, size, at, bytes: bytes.to_vec().into() })? {
        AdminAnswer::Uploads { missing } => Ok(missing),
        other => panic!("another answer: {other:?}"),
    }
}

#[test]
fn uploads_come_in_pieces_and_go_to_workers() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    assert_eq!(answer(&mut peer, AdminCall::UploadCheck { uploads: vec![HELLO] }), Ok(missing(&[HELLO])));
    assert_eq!(put(&mut peer, HELLO, 5, 0, b"hel"), Ok(vec![HELLO]));
    assert_eq!(put(&mut peer, HELLO, 5, 4, b"o"), Err(Code::WrongPlace));
    assert_eq!(put(&mut peer, HELLO, 5, 3, b"lo"), Ok(Vec::new()));
    assert_eq!(put(&mut peer, UploadId([9; 32]), 5, 0, b"liars"), Err(Code::WrongHash));
    assert_eq!(put(&mut peer, UploadId([9; 32]), u64::MAX, 0, b"large"), Err(Code::OverDisk));
    let get = |at| AdminCall::UploadGet { upload: HELLO, at };
    let piece = |bytes: &'static [u8]| Ok(AdminAnswer::Piece { bytes: bytes.into(), size: 5 });
    assert_eq!(answer(&mut peer, get(0)), piece(b"hello"));
    assert_eq!(answer(&mut peer, get(3)), piece(b"lo"));
    assert_eq!(answer(&mut peer, get(5)), piece(b""));
    let none = AdminCall::UploadGet { upload: UploadId([9; 32]), at: 0 };
    assert_eq!(answer(&mut peer, none), Err(Code::NotFound));
    let names: Vec<String> =
        archive(&broker).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, [format!("upload-{HELLO}")]);
}

#[test]
fn results_are_listed_and_fetched() {
    let broker = Broker::start();
    let mut worker = OutputWorker::start(&broker, 1);
    let id = submit(&broker, "1-1");
    let tasks = worker.take(1);
    let large = vec![7; PIECE_BYTES_MAX + 10];
    worker.file(id, "out/large.bin", 0, false, &large[..PIECE_BYTES_MAX]).unwrap();
    worker.file(id, "out/large.bin", PIECE_BYTES_MAX as u64, true, &large[PIECE_BYTES_MAX..]).unwrap();
    worker.file(id, "empty", 0, true, b"").unwrap();
    worker.end(&tasks[0], 0);
    let list = broker.run(&["job", "result", "last", "--list", "-o", "name"]).expect(0).text();
    assert_eq!(list, "empty\nout/large.bin\n");
    let rows = broker.run(&["job", "result", "last", "--list", "-o", "jsonl"]).expect(0).documents();
    assert_eq!((rows.len(), &rows[0]["schema"]), (2, &"turno.result_row/1".into()));
    let fetched = broker.run(&["job", "result", "last", "--dir", "got", "-o", "name"]).expect(0);
    assert_eq!(fetched.text(), "got/1/empty\ngot/1/out/large.bin\n");
    let got = broker.place.path().join("got/1");
    assert_eq!(fs::read(got.join("out/large.bin")).unwrap(), large);
    assert_eq!(fs::read(got.join("empty")).unwrap(), b"");
    // Again, over what is there; and not through a link that leads elsewhere.
    broker.run(&["job", "result", "last", "--dir", "got"]).expect(0);
    fs::remove_dir_all(got.join("out")).unwrap();
    std::os::unix::fs::symlink("/tmp", got.join("out")).unwrap();
    let refused = broker.run(&["job", "result", "last", "--dir", "got"]).expect(1);
    assert!(refused.stderr.contains("not a directory"), "{}", refused.stderr);
    broker.run(&["job", "result", "1.2", "--list", "-o", "name"]).expect(4);
    assert!(!broker.place.path().join("job-1").exists());
}

/// Who follows sees what comes, the middle too, until the job has ended.
#[test]
fn output_is_followed_until_the_end() {
    let broker = Broker::start();
    let mut worker = OutputWorker::start(&broker, 2);
    let id = submit(&broker, "1-2");
    let tasks = worker.take(2);
    worker.hand_in(vec![piece(id, 2, 0, "before\n")]);
    let mut follower = broker.start_turno(&["job", "logs", "last", "-f"]);
    follower.expect_line("1.2: before");
    wait::until("somebody looks", || worker.hand_in(Vec::new()).0 == [(JobId(id), 1), (JobId(id), 2)]);
    worker.hand_in(vec![piece(id, 1, 0, "head\n")]);
    follower.expect_line("1.1: head");
    let live = OutputPiece { live: true, ..piece(id, 1, 1_000_000, "middle\n") };
    worker.hand_in(vec![live]);
    follower.expect_line("1.1: middle");
    worker.hand_in(vec![piece(id, 1, 1_000_000, "middle\ntail")]);
    worker.end(&tasks[0], 0);
    assert!(follower.runs());
    worker.end(&tasks[1], 0);
    assert_eq!(follower.end(wait::PATIENCE), 0);
    assert_eq!(follower.stdout(), ["1.2: before", "1.1: head", "1.1: middle", "1.1: tail"]);
    assert_eq!(follower.stderr(), ["1.1: … 977KiB left out …"]);
    // What was only for those who looked is not kept.
    assert_eq!(logs(&broker, &["1.1"]).0, "head\nmiddle\ntail");

    // One task alone is followed to its own end, and Ctrl-C leaves all as it is.
    let id = submit(&broker, "1-2");
    let tasks = worker.take(2);
    worker.hand_in(vec![piece(id, 1, 0, "raw")]);
    let mut one = broker.start_turno(&["job", "logs", "2.1", "-f"]);
    let left = broker.start_turno(&["job", "logs", "2", "-f"]);
    worker.hand_in(vec![piece(id, 1, 3, " line\n")]);
    one.expect_line("raw line");
    left.expect_line("2.1: raw line");
    worker.end(&tasks[0], 0);
    assert_eq!(one.end(wait::PATIENCE), 0);
    let mut left = left;
    left.signal(Signal::INT);
    assert_eq!(left.end(wait::PATIENCE), 130);
    left.expect_line("job 2 continues");
    worker.end(&tasks[1], 0);
}

/// Ten thousand tasks that write something leave a handful of files.
#[test]
fn ten_thousand_tasks_leave_few_files() {
    let broker = Broker::start();
    let mut worker = OutputWorker::start(&broker, 10_000);
    let id = submit(&broker, "1-10000");
    let tasks = worker.take(10_000);
    for some in tasks.chunks(OUTPUT_PIECES_MAX) {
        let pieces = some.iter().map(|task| piece(id, task.task, 0, format!("task {}\n", task.task))).collect();
        assert_eq!(worker.hand_in(pieces).1, []);
    }
    let files = archive(&broker);
    assert!(files.len() < 10, "{files:?}");
    let text = logs(&broker, &["1"]).0;
    assert_eq!(text.lines().count(), 10_000);
    assert!(text.ends_with("1.10000: task 10000\n"));
    assert_eq!(logs(&broker, &["1.7000-7001"]).0, "1.7000: task 7000\n1.7001: task 7001\n");
}

/// With a job goes all that its tasks left, and nothing else.
#[test]
fn what_tasks_left_goes_with_their_job() {
    let broker = Broker::start();
    let mut worker = OutputWorker::start(&broker, 1);
    for id in [1, 2] {
        assert_eq!(submit(&broker, "1-1"), id);
        let tasks = worker.take(1);
        worker.hand_in(vec![piece(id, 1, 0, format!("job {id}\n"))]);
        worker.file(id, "a", 0, true, b"a").unwrap();
        worker.end(&tasks[0], 0);
    }
    let doctor = broker.run(&["doctor"]).expect(0).text();
    assert!(doctor.contains("archive    ") && doctor.contains(" in 2 files"), "{doctor}");
    broker.run(&["job", "rm", "1", "--yes"]).expect(0);
    broker.run(&["job", "logs", "1"]).expect(4);
    assert_eq!(logs(&broker, &["2"]).0, "job 2\n");
    assert_eq!(archive(&broker).len(), 2);
    broker.run(&["job", "rm", "2", "--yes"]).expect(0);
    wait::until("the archive is empty", || archive(&broker).is_empty());
}
