//! Submitting before a broker that answers by script: what goes over the wire for lists, scripts and files, and how it
//! ends when the broker has no room, is busy or has forgotten.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};
use turno_e2e::{Act, Place, Script};
use turno_proto::items;
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{Array, JobId, JobSpec, JobState, JobView, TaskCounts, TaskState, TaskView, Work};
use turno_proto::model::limits::PIECE_BYTES_MAX;
use turno_proto::model::{Code, Moment, TaskId};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::work;

/// Where nobody listens.
const NOBODY: &str = "unix:/nowhere/turno.sock";

fn job(spec: &JobSpec, state: JobState) -> JobView {
    JobView {
        id: JobId(7),
        name: spec.name.clone(),
        state,
        array: spec.array.into(),
        tasks: spec.array.count,
        counts: TaskCounts { waiting: spec.array.count, ..TaskCounts::default() },
        slots: spec.slots,
        priority: spec.priority,
        tags: spec.tags.clone(),
        submitted_at: Moment::from_unix_ms(1_794_744_000_000),
        ..JobView::default()
    }
}

fn told(job: JobView) -> Act {
    Act::Answer(Box::new(AdminAnswer::Job { job: Box::new(job) }))
}

fn missing(missing: Vec<UploadId>) -> Act {
    Act::Answer(Box::new(AdminAnswer::Uploads { missing }))
}

fn place(script: &Script) -> Place {
    let mut place = Place::new();
    place.set_url(script.url());
    place
}

fn id_of(bytes: &[u8]) -> UploadId {
    UploadId(Sha256::digest(bytes).into())
}

/// The one job that was submitted.
fn submitted(script: &Script) -> JobSpec {
    let specs: Vec<JobSpec> = script
        .asked()
        .into_iter()
        .filter_map(|call| match call {
            AdminCall::JobSubmit { spec } => Some(*spec),
            _ => None,
        })
        .collect();
    let [spec] = &specs[..] else { panic!("one job: {specs:?}") };
    spec.clone()
}

/// An archive as a broker has it, without its disk: pieces come in order, and a whole has the hash it is known by.
#[derive(Debug, Default)]
struct Archive {
    begun: BTreeMap<UploadId, Vec<u8>>,
    whole: BTreeMap<UploadId, Vec<u8>>,
}

impl Archive {
    fn act(&mut self, call: &AdminCall) -> Act {
        match call {
            AdminCall::UploadCheck { uploads } => {
                missing(uploads.iter().copied().filter(|id| !self.whole.contains_key(id)).collect())
            }
            AdminCall::UploadPut { upload, size, at, bytes } => {
                assert!(bytes.len() <= PIECE_BYTES_MAX, "a piece of {} bytes", bytes.len());
                let begun = self.begun.entry(*upload).or_default();
                if *at == 0 {
                    begun.clear();
                }
                if begun.len() as u64 != *at {
                    return Act::Refuse(Code::WrongPlace);
                }
                begun.extend_from_slice(bytes);
                if (begun.len() as u64) < *size {
                    return missing(vec![*upload]);
                }
                let bytes = self.begun.remove(upload).unwrap_or_default();
                if id_of(&bytes) != *upload {
                    return Act::Refuse(Code::WrongHash);
                }
                self.whole.insert(*upload, bytes);
                missing(Vec::new())
            }
            AdminCall::JobSubmit { spec } => {
                assert!(
                    spec.uploads.iter().all(|id| self.whole.contains_key(id)),
                    "every file is there before its job"
                );
                told(job(spec, JobState::Waiting))
            }
            _ => Act::Refuse(Code::BadCall),
        }
    }
}

/// Words, what is on standard input, columns, and items.
type List<'a> = (&'a [&'a str], &'a str, &'a [&'a str], Vec<Vec<&'a str>>);

#[test]
fn items_travel_with_the_job_one_for_each_task() {
    let rows: Vec<Vec<&str>> = vec![vec!["0.5", "x y"], vec!["0.7", "it's"]];
    let table: [List<'_>; 4] = [
        (&["--each-csv", "-", "--", "./sim", "{rate}"], "rate,name\n0.5,x y\n0.7,it's\n", &["rate", "name"], rows),
        (&["--each-line", "-", "--", "./sim", "{}"], "a\r\n\r\nb c", &[], vec![vec!["a"], vec!["b c"]]),
        (
            &["--each-json", "-", "--", "./sim", "{k}"],
            "{\"k\": 1}\n{\"k\": \"two\"}\n",
            &["k"],
            vec![vec!["1"], vec!["two"]],
        ),
        (&["--each", "-1", "2", "--", "./sim", "{}"], "", &[], vec![vec!["-1"], vec!["2"]]),
    ];
    for (words, input, columns, expected) in table {
        let script = Script::start(|call| Archive::default().act(call));
        let run = place(&script).run_with_input(["submit"].iter().chain(words), input.as_bytes()).expect(0);
        assert_eq!(run.text(), "job 7 (sim) submitted: 2 tasks\n", "{words:?}");
        let spec = submitted(&script);
        assert_eq!(spec.array, Array { first: 1, count: 2, step: 1 }, "{words:?}");
        assert_eq!(work::decode(&spec.work).expect("work").columns, columns, "{words:?}");
        let found: Vec<_> = (0..2).filter_map(|place| items::get(&spec.items, place)).collect();
        assert_eq!(found, expected, "{words:?}");
        assert!(items::check(&spec.items).is_ok_and(|shape| shape.count == 2), "{words:?}");
    }
}

#[test]
fn paths_are_found_where_the_command_is_typed() {
    let script = Script::start(|call| Archive::default().act(call));
    let place = place(&script);
    for name in ["data/b.csv", "data/a.csv", "data/c.txt"] {
        place.file(name, "");
    }
    place.run(["submit", "--glob", "data/*.csv", "--shell", "--", "sort {} > {}.sorted"]).expect(0);
    let spec = submitted(&script);
    assert_eq!(
        (items::get(&spec.items, 0), items::get(&spec.items, 1)),
        (Some(vec!["data/a.csv"]), Some(vec!["data/b.csv"]))
    );
    let work = work::decode(&spec.work).expect("work");
    let here = place.path().canonicalize().expect("our own place").to_str().expect("a plain path").to_owned();
    assert_eq!(
        work,
        Work {
            argv: vec!["sort {} > {}.sorted".to_owned()],
            shell: true,
            cwd: here,
            cwd_optional: true,
            ..Work::default()
        }
    );
}

/// A large file goes in pieces, one of two names once, and the next job finds it there.
#[test]
fn files_are_uploaded_once_and_named_by_their_hash() {
    let archive = Arc::new(Mutex::new(Archive::default()));
    let kept = Arc::clone(&archive);
    let script = Script::start(move |call| kept.lock().expect("no script panics").act(call));
    let place = place(&script);
    let large: Vec<u8> = (0..2_500_000_u32).map(|number| u8::try_from(number % 251).expect("small")).collect();
    fs::write(place.path().join("large.bin"), &large).expect("our own place");
    place.script("tools/run", "./sim");
    place.file("tools/empty", "");
    let words =
        ["submit", "--upload", "large.bin", "large.bin=in/copy", "tools", "--stdin", "large.bin", "--", "tools/run"];
    place.run(words).expect(0);
    let spec = submitted(&script);
    let work = work::decode(&spec.work).expect("work");
    let run = fs::read(place.path().join("tools/run")).expect("our own file");
    let files: Vec<_> = work.files.iter().map(|file| (file.name.as_str(), file.upload, file.executable)).collect();
    assert_eq!(
        files,
        [
            ("in/copy", id_of(&large), false),
            ("large.bin", id_of(&large), false),
            ("tools/empty", id_of(b""), false),
            ("tools/run", id_of(&run), true),
        ]
    );
    assert_eq!((work.stdin, work.cwd.as_str()), (Some(id_of(&large)), ""));
    let mut ids = vec![id_of(&large), id_of(b""), id_of(&run)];
    ids.sort_unstable();
    assert_eq!(spec.uploads, ids);
    let puts = || script.asked().iter().filter(|call| matches!(call, AdminCall::UploadPut { .. })).count();
    assert_eq!(puts(), large.len().div_ceil(PIECE_BYTES_MAX) + 2, "each byte once");
    assert_eq!(archive.lock().expect("no script panics").whole[&id_of(&large)], large);
    let before = puts();
    place.run(words).expect(0);
    assert_eq!(puts(), before, "what is there is not sent again");
}

/// Whose archive has too much to do, and then starts again with nothing, gets the file all the same.
#[test]
fn an_upload_outlives_a_busy_and_a_forgetful_broker() {
    let mut archive = Archive::default();
    let (mut calls, mut checks) = (0, 0);
    let script = Script::start(move |call| {
        if matches!(call, AdminCall::UploadCheck { .. }) {
            checks += 1;
            if checks == 1 {
                return Act::Refuse(Code::ArchiveBusy);
            }
        }
        if matches!(call, AdminCall::UploadPut { .. }) {
            calls += 1;
            match calls {
                2 | 3 | 12 => return Act::Refuse(Code::ArchiveBusy),
                20 => archive = Archive::default(),
                _ => {}
            }
        }
        archive.act(call)
    });
    let place = place(&script);
    let large = vec![7; 4_000_000];
    fs::write(place.path().join("large.bin"), &large).expect("our own place");
    place.run(["submit", "--upload", "large.bin", "--", "./sim"]).expect(0);
    assert_eq!(submitted(&script).uploads, [id_of(&large)]);
}

#[test]
fn an_upload_that_cannot_be_is_told_and_nothing_is_submitted() {
    let table = [
        (Code::OverDisk, "the broker has no space for data.bin", "over_disk"),
        (Code::WrongHash, "hash", "wrong_hash"),
        (Code::WrongPlace, "a file chunk has the wrong offset", "wrong_place"),
        (Code::BadCall, "", "bad_call"),
    ];
    for (code, expected, name) in table {
        let script = Script::start(move |call| match call {
            AdminCall::UploadCheck { uploads } => missing(uploads.clone()),
            _ => Act::Refuse(code),
        });
        let place = place(&script);
        place.file("data.bin", "some bytes");
        let run = place.run(["submit", "--upload", "data.bin", "--", "./sim"]).expect(code.exit().into());
        assert!(run.stderr.contains(expected) && run.stderr.contains(&format!("code: {name}")), "{}", run.stderr);
        assert!(!script.asked().iter().any(|call| matches!(call, AdminCall::JobSubmit { .. })), "{name}");
        let json = place.run(["submit", "--wait", "--json", "--upload", "data.bin", "--", "./sim"]);
        let exit = if code.exit() == 2 { 2 } else { 125 };
        assert_eq!(json.expect(exit).error_code(), name);
    }
}

/// The file is another one when the broker says that it wants it.
#[test]
fn a_file_that_changes_meanwhile_is_not_sent() {
    let path = Arc::new(Mutex::new(std::path::PathBuf::new()));
    let changed = Arc::clone(&path);
    let script = Script::start(move |call| match call {
        AdminCall::UploadCheck { uploads } => {
            fs::write(&*changed.lock().expect("no script panics"), "other bytes, as long").expect("our own file");
            missing(uploads.clone())
        }
        _ => Act::Refuse(Code::BadCall),
    });
    let place = place(&script);
    *path.lock().expect("no script panics") = place.file("data.bin", "some bytes, this long");
    let run = place.run(["submit", "--upload", "data.bin", "--", "./sim"]).expect(1);
    assert!(run.stderr.contains("data.bin changed while it was being read"), "{}", run.stderr);
    assert_eq!(script.asked().len(), 1, "nothing is sent: {:?}", script.asked());
}

#[test]
fn a_script_is_uploaded_and_says_how_it_is_run() {
    let archive = Arc::new(Mutex::new(Archive::default()));
    let kept = Arc::clone(&archive);
    let script = Script::start(move |call| kept.lock().expect("no script panics").act(call));
    let place = place(&script);
    let text = "#!/bin/sh\n# Simulates.\n#TURNO --array 1-10%4 --slots 2 --tag s\n#TURNO --env 'A=x y'\necho \"$@\"\n#TURNO --hold\n";
    let path = place.file("jobs/sim.sh", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our own file");
    let run = place.run(["submit", "jobs/sim.sh", "--slots", "3", "first", "--", "--seed", "{}"]).expect(0);
    assert_eq!(run.text(), "job 7 (sim.sh) submitted: 10 tasks\n");
    assert!(run.stderr.contains("warning: jobs/sim.sh:6: #TURNO line ignored"), "{}", run.stderr);
    let spec = submitted(&script);
    assert_eq!((spec.array.count, spec.max_parallel, spec.slots, spec.hold), (10, Some(4), 3, false));
    assert_eq!((spec.tags, spec.uploads), (vec!["s".to_owned()], vec![id_of(text.as_bytes())]));
    let work = work::decode(&spec.work).expect("work");
    assert_eq!(work.argv, ["./sim.sh", "first", "--seed", "{}"]);
    assert_eq!(work.env, [("A".to_owned(), "x y".to_owned())]);
    assert_eq!((work.cwd.as_str(), work.files.len(), work.files[0].executable), ("", 1, true));
    place.file("bad.sh", "#!/bin/sh\n#TURNO --slots none\n");
    let run = place.run(["submit", "bad.sh"]).expect(2);
    assert!(run.stderr.contains("error: bad.sh:2: invalid value 'none' for '--slots <N>'"), "{}", run.stderr);
    assert_eq!(place.run(["submit", "bad.sh", "--json"]).expect(2).error_code(), "bad_usage");
}

#[test]
fn a_dry_run_asks_nobody() {
    let place = Place::new();
    place.file("rows.csv", "rate,name\n0.5,x\n0.7,y z\n");
    place.script("run.sh", "#TURNO --slots 2");
    let words = ["submit", "--url", NOBODY, "--dry-run", "--each-csv", "rows.csv", "run.sh", "{rate}", "{name}"];
    let run = place.run(words).expect(0);
    let expected = "name   run.sh\ntasks  2 tasks, numbers 1-2\nfirst  ./run.sh 0.5 x\nlast   ./run.sh 0.7 'y z'\n";
    assert!(run.text().starts_with(expected), "{}", run.text());
    assert!(run.stderr.contains("nothing was submitted"), "{}", run.stderr);
    let document = place.run(words.iter().chain(&["--json"])).expect(0).document("turno.submission/1");
    let submission = &document["submission"];
    assert_eq!(submission["last"]["argv"], serde_json::json!(["./run.sh", "0.7", "y z"]));
    assert_eq!((&submission["tasks"], &submission["files"][0]["name"]), (&2.into(), &"run.sh".into()));
    assert_eq!(place.run(words.iter().chain(&["-o", "name", "-q"])).expect(0).text(), "run.sh\n");
}

/// What is wrong with a list is told with its line; what comes to no task ends with 4.
#[test]
fn bad_lists_are_refused_before_a_broker_is_looked_for() {
    let place = Place::new();
    place.file("ragged.csv", "rate,name\n0.5,x\n0.7\n");
    place.file("rows.csv", "rate,name\n0.5,x\n");
    place.file("header.csv", "rate,name\n");
    place.file("empty", "\n\n");
    place.file("bad.json", "{\"a\": 1, \"b\": 1}\n{\"b\": 1}\n");
    fs::write(place.path().join("latin1"), b"good\ncaf\xe9\n").expect("our own place");
    let table: [(&[&str], i32, &str, &str); 12] = [
        (
            &["--each-csv", "ragged.csv", "--", "a", "{rate}"],
            2,
            "ragged.csv:3: 1 field, but the header has 2",
            "bad_job",
        ),
        (&["--each-csv", "rows.csv", "--", "a", "{size}"], 2, "the columns are {rate}, {name}", "bad_job"),
        (&["--each-csv", "rows.csv", "--env", "A={size}", "--", "a"], 2, "the columns are {rate}, {name}", "bad_job"),
        (&["--each-csv", "header.csv", "--", "a", "{rate}"], 4, "no task in header.csv", "not_found"),
        (&["--each-line", "empty", "--", "a", "{}"], 4, "no task in empty", "not_found"),
        (&["--each-line", "latin1", "--", "a", "{}"], 2, "latin1:2: not valid UTF-8", "bad_job"),
        (&["--each-line", "nowhere", "--", "a", "{}"], 1, "cannot read nowhere", "io"),
        (&["--each-json", "bad.json", "--", "a", "{a}"], 2, "bad.json:2: the member \"a\" is missing", "bad_job"),
        (&["--glob", "*.none", "--", "a", "{}"], 4, "nothing matches \"*.none\"", "not_found"),
        (&["--each", "x", "--", "a"], 2, "the command has no placeholder", "bad_job"),
        (&["--each", "x", "--shell", "--", "echo \"{}\""], 2, "{}", "bad_job"),
        (&["--upload", "nowhere", "--", "a"], 4, "cannot read nowhere", "not_found"),
    ];
    for (words, exit, expected, code) in table {
        let run = place.run(["submit", "--url", NOBODY].iter().chain(words)).expect(exit);
        assert!(run.stderr.contains(expected), "{words:?} names {expected:?}: {}", run.stderr);
        let json = place.run(["submit", "--json", "--url", NOBODY].iter().chain(words)).expect(exit);
        assert_eq!(json.error_code(), code, "{words:?}");
    }
}

/// One command that is waited for ends with its own exit status; 126 and 127 are the worker's word for one that cannot be
/// run or is not there.
#[test]
fn a_wait_for_one_command_ends_as_the_command_did() {
    for exit in [3, 126, 127] {
        let script = Script::start(move |call| match call {
            AdminCall::JobSubmit { spec } => told(job(spec, JobState::Waiting)),
            AdminCall::JobShow { .. } | AdminCall::JobWait { .. } => {
                let spec = JobSpec::new("sim", Array::ONE, bytes_of_nothing());
                let counts = TaskCounts { failed: 1, ..TaskCounts::default() };
                told(JobView { counts, ..job(&spec, JobState::Failed) })
            }
            AdminCall::JobTasks { .. } => {
                let id = TaskId { job: JobId(7), task: 1 };
                let task = TaskView { exit_code: Some(exit), ..TaskView::new(id, TaskState::Failed, 1) };
                Act::Answer(Box::new(AdminAnswer::Tasks { tasks: vec![task], next: None }))
            }
            _ => Act::Refuse(Code::BadCall),
        });
        let place = place(&script);
        place.run(["submit", "--wait", "--progress", "none", "--", "./sim"]).expect(exit);
        place.script("sim.sh", "exit 3");
        place.run(["submit", "--wait", "--array", "1-1", "--", "./sim"]).expect(1);
    }
}

fn bytes_of_nothing() -> bytes::Bytes {
    work::encode(&Work::default()).expect("short enough")
}
