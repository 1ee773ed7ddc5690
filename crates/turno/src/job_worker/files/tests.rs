//! Files of tasks, before a broker that the test plays.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use turno_proto::foreman::TaskFile;
use turno_proto::model::archive::UploadId;
use turno_proto::model::{Code, limits};
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::*;
use crate::job_worker::double::{Act, Double};

/// Files at a worker of its own, and the double's view of the calls.
struct World {
    files: Files,
    root: tempfile::TempDir,
    _double: Double,
}

impl World {
    async fn new(script: impl FnMut(AdminCall) -> Act + Send + 'static) -> Self {
        let root = tempfile::tempdir().unwrap();
        let scratch = Arc::new(Scratch::new(Some(root.path()), "w").unwrap());
        let double = Double::start(script);
        let outbox = Outbox::start("w", double.options());
        Self { files: Files::new(scratch, outbox), root, _double: double }
    }

    /// The files in the worker's own directory.
    fn rest(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.path().join("turno-w")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

fn hash(bytes: &[u8]) -> UploadId {
    UploadId(Sha256::digest(bytes).into())
}

fn task() -> Task {
    Task { job: 7, task: 3, attempt: 1, ..Task::default() }
}

fn file(name: &str, bytes: &[u8]) -> TaskFile {
    TaskFile { name: name.to_owned(), upload: hash(bytes), executable: false }
}

fn piece(whole: &[u8], at: u64) -> Act {
    let from = usize::try_from(at).unwrap().min(whole.len());
    let to = whole.len().min(from + limits::PIECE_BYTES_MAX);
    Act::Answer(AdminAnswer::Piece { bytes: Bytes::copy_from_slice(&whole[from..to]), size: whole.len() as u64 })
}

fn big() -> Vec<u8> {
    (0..700_000_u32).map(|number| (number % 251) as u8).collect()
}

/// Gives out what has that hash, and counts the calls.
fn giving(wholes: Vec<Vec<u8>>, calls: Arc<Mutex<u32>>) -> impl FnMut(AdminCall) -> Act + Send + 'static {
    move |call| {
        let AdminCall::UploadGet { upload, at } = call else { return Act::Nothing };
        *calls.lock().unwrap() += 1;
        wholes.iter().find(|whole| hash(whole) == upload).map_or(Act::Refuse(Code::NotFound), |whole| piece(whole, at))
    }
}

#[tokio::test]
async fn many_tasks_that_want_an_upload_fetch_it_once_and_have_copies() {
    let calls = Arc::new(Mutex::new(0));
    let world = World::new(giving(vec![big(), Vec::new()], Arc::clone(&calls))).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=8 {
        let files = vec![TaskFile { executable: true, ..file("bin/sim", &big()) }, file("empty", b"")];
        let task = Task { task: number, files, stdin: Some(hash(&big())), ..task() };
        let files = world.files.clone();
        tasks.spawn(async move { files.prepare(&task).await });
    }
    let prepared: Vec<Prepared> = tasks.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(*calls.lock().unwrap(), 4, "three pieces of one, one of the other");
    for (at, prepared) in prepared.iter().enumerate() {
        let path = prepared.dir.join("bin/sim");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::metadata(prepared.dir.join("empty")).unwrap().permissions().mode() & 0o777, 0o644);
        let mut stdin = Vec::new();
        prepared.stdin.as_ref().unwrap().read_to_end(&mut stdin).unwrap();
        assert!(fs::read(&path).unwrap() == big() && stdin == big(), "task {at} has what was uploaded");
        fs::write(&path, "changed").unwrap();
    }
    for prepared in prepared {
        let own = prepared.dir.clone();
        world.files.finish(&task(), prepared, false).await.unwrap();
        assert!(!own.exists(), "its own directory goes with the task");
    }
    assert_eq!(world.rest(), ["cache"]);
}

#[tokio::test]
async fn a_fetch_outlives_a_broker_that_hangs_up_is_busy_or_damages_it() {
    let mut calls = 0;
    let world = World::new(move |call| {
        let AdminCall::UploadGet { at, .. } = call else { return Act::Nothing };
        calls += 1;
        match calls {
            1 => piece(b"something else", at),
            3 => Act::HangUp,
            4 => Act::Refuse(Code::ArchiveBusy),
            _ => piece(&big(), at),
        }
    })
    .await;
    let prepared = world.files.prepare(&Task { files: vec![file("a", &big())], ..task() }).await.unwrap();
    assert!(fs::read(prepared.dir.join("a")).unwrap() == big());
}

#[tokio::test]
async fn what_is_given_and_cannot_be_is_said() {
    let world = World::new(|call| match call {
        AdminCall::UploadGet { upload, .. } if upload == hash(b"gone") => Act::Refuse(Code::NotFound),
        AdminCall::UploadGet { upload, .. } if upload == hash(b"part") => {
            Act::Answer(AdminAnswer::Piece { bytes: Bytes::new(), size: 5 })
        }
        AdminCall::UploadGet { .. } => piece(b"damaged", 0),
        _ => Act::Nothing,
    })
    .await;
    let short = |bytes: &[u8]| hash(bytes).to_string()[..12].to_owned();
    let named = |dir: &str| Task { working_dir: dir.to_owned(), ..task() };
    let table = [
        (Task { files: vec![file("../a", b"")], ..task() }, "invalid file name for a task: ../a".to_owned()),
        (
            Task { files: vec![file("a", b"gone")], ..task() },
            format!("a: cannot fetch an upload ({}): not found", short(b"gone")),
        ),
        (
            Task { stdin: Some(hash(b"part")), ..task() },
            format!("stdin: the broker has only part of an upload ({})", short(b"part")),
        ),
        (Task { files: vec![file("a", b"good")], ..task() }, format!("a: an upload is damaged ({})", short(b"good"))),
        (
            Task { files: vec![file("a", b"damaged"), file("a/b", b"damaged")], ..task() },
            "a/b: cannot be written (file exists)".to_owned(),
        ),
        (named("/no/such"), "no such directory: /no/such".to_owned()),
        (
            Task { files: vec![file("a", b"")], ..named("/tmp") },
            "a task with uploads uses its own directory: omit --cwd".to_owned(),
        ),
    ];
    for (task, status) in table {
        assert_eq!(world.files.prepare(&task).await.unwrap_err(), status);
    }
    assert_eq!(world.rest(), ["cache"], "nothing of them is left");
}

#[tokio::test]
async fn a_task_runs_where_it_should() {
    let world = World::new(|_| Act::Nothing).await;
    let there = world.root.path().to_str().unwrap();
    let named = |dir: &str, optional| Task { working_dir: dir.to_owned(), dir_optional: optional, ..task() };
    let collect = vec!["x".to_owned()];
    let here = std::env::current_dir().unwrap();
    let own = world.root.path().join("turno-w/task-7.3.1");
    for (task, dir) in [
        (task(), &*here),
        (named(there, false), world.root.path()),
        (named(there, true), world.root.path()),
        (named("/no/such", true), &*own),
        (Task { collect: collect.clone(), ..task() }, &*own),
        (Task { collect: collect.clone(), ..named(there, true) }, &*own),
        (Task { collect, ..named(there, false) }, world.root.path()),
    ] {
        let prepared = world.files.prepare(&task).await.unwrap();
        assert_eq!((prepared.dir.as_path(), prepared.scratch.is_some()), (dir, dir == own));
    }
}

/// The files that the double got, by name.
type Kept = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

#[tokio::test]
async fn results_arrive_whole_though_the_broker_forgets_and_hangs_up() {
    let (kept, whole) = (Kept::default(), Kept::default());
    let (parts, wholes) = (Arc::clone(&kept), Arc::clone(&whole));
    let mut calls = 0;
    let world = World::new(move |call| {
        let AdminCall::TaskFile { worker, job, task, attempt, name, at, last, bytes } = call else {
            return Act::Nothing;
        };
        assert_eq!((worker.as_str(), job.0, task, attempt), ("w", 7, 3, 1));
        calls += 1;
        let mut parts = parts.lock().unwrap();
        match calls {
            2 => return Act::HangUp,
            3 => return Act::Refuse(Code::ArchiveBusy),
            5 => parts.clear(),
            _ => {}
        }
        let part = parts.entry(name.clone()).or_default();
        if at == 0 {
            part.clear();
        }
        if at != part.len() as u64 {
            return Act::Refuse(Code::WrongPlace);
        }
        part.extend(&bytes);
        if last {
            wholes.lock().unwrap().insert(name, part.clone());
        }
        Act::Answer(AdminAnswer::OutputKept { per_task: 8, follow: Vec::new(), refused: Vec::new() })
    })
    .await;
    let task = Task { collect: vec!["out/*".to_owned(), "two".to_owned()], ..task() };
    let prepared = world.files.prepare(&task).await.unwrap();
    let two = vec![7; 2 * limits::PIECE_BYTES_MAX];
    fs::create_dir(prepared.dir.join("out")).unwrap();
    for (name, bytes) in [("out/big", &big()), ("out/empty", &Vec::new()), ("two", &two)] {
        fs::write(prepared.dir.join(name), bytes).unwrap();
    }
    world.files.finish(&task, prepared, true).await.unwrap();
    let wanted = [("out/big", big()), ("out/empty", Vec::new()), ("two", two)];
    assert!(*whole.lock().unwrap() == wanted.map(|(name, bytes)| (name.to_owned(), bytes)).into());
    assert_eq!(world.rest(), [] as [&str; 0]);
}

#[tokio::test]
async fn results_that_are_not_taken_fail_the_task() {
    let world = World::new(|call| match call {
        AdminCall::TaskFile { name, .. } if name == "late" => Act::Refuse(Code::NotYourTask),
        AdminCall::TaskFile { name, .. } if name == "lost" => Act::Refuse(Code::WrongPlace),
        AdminCall::TaskFile { .. } => Act::Refuse(Code::ArchiveFull),
        _ => Act::Nothing,
    })
    .await;
    for (name, status) in [
        ("full", "full: the archive has no room for more task results"),
        ("late", "late: the task does not run on this worker"),
        ("lost", "lost: the broker lost it repeatedly"),
        ("x*y", "nothing matches x*y"),
    ] {
        let task = Task { collect: vec![name.to_owned()], ..task() };
        let prepared = world.files.prepare(&task).await.unwrap();
        if !name.contains('*') {
            fs::write(prepared.dir.join(name), "x").unwrap();
        }
        assert_eq!(world.files.finish(&task, prepared, true).await, Err(status.to_owned()));
        let prepared = world.files.prepare(&task).await.unwrap();
        assert_eq!(world.files.finish(&task, prepared, false).await, Ok(()), "a failure brings nothing back");
    }
}
