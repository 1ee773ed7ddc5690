//! Against real programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::job_worker::double::Double;
use crate::job_worker::scratch::Scratch;
use crate::process::{GRACE, wait};

/// A worker's things, and a directory for a test.
struct Bench {
    dir: TempDir,
    context: TaskContext,
    order: watch::Sender<TaskOrder>,
    wishes: watch::Receiver<TaskOrder>,
    _double: Double,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Arc::new(Scratch::new(Some(dir.path()), "w").unwrap());
        let double = Double::keeping();
        let outbox = Outbox::start("w", double.options());
        let files = Files::new(scratch, outbox.clone());
        let context = TaskContext { worker: Arc::from("w"), guard: Guard::none(), files, outbox };
        let (order, wishes) = watch::channel(TaskOrder::Run);
        Self { dir, context, order, wishes, _double: double }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn shell(&self, script: &str) -> Task {
        let argv = ["sh", "-c", script].map(ToOwned::to_owned).to_vec();
        let working_dir = self.dir.path().display().to_string();
        Task {
            job: 7,
            task: 3,
            attempt: 2,
            num_tasks: 9,
            name: "a name".to_owned(),
            argv,
            working_dir,
            ..Task::default()
        }
    }

    async fn run(&self, task: Task) -> StatusUpdate {
        run(task, self.context.clone(), self.wishes.clone()).await
    }

    /// Runs a script, and wants that of it as soon as the file is there.
    async fn run_until(&self, task: Task, file: &str, order: TaskOrder) -> StatusUpdate {
        let file = self.path(file);
        let ask = async {
            wait::until_there(&file).await;
            self.order.send_replace(order);
        };
        tokio::join!(self.run(task), ask).0
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

fn end(update: &StatusUpdate) -> (bool, Option<i32>, Option<i32>, &str) {
    (update.success, update.exit_code, update.signal, &update.status)
}

#[tokio::test]
async fn a_task_has_its_words_its_directory_and_its_facts() {
    let bench = Bench::new();
    let facts = "$TURNO_JOB_ID $TURNO_TASK_ID $TURNO_TASK_COUNT $TURNO_ATTEMPT $TURNO_JOB_NAME $TURNO_WORKER_ID";
    let mut task = bench.shell(&format!("echo {facts} $OWN \"$1\" > out; ps -o pgid= -p $$ > group; echo $$ > pid"));
    task.argv.extend(["sh".to_owned(), "two  words; $HOME".to_owned()]);
    task.env.insert("OWN".to_owned(), "own".to_owned());
    let before = unix_ms();
    let update = bench.run(task).await;
    assert_eq!(end(&update), (true, Some(0), None, "done"));
    assert_eq!((update.job, update.task), (7, 3));
    assert!(before <= update.started.unwrap() && update.started <= update.ended);
    assert_eq!(bench.read("out"), "7 3 9 2 a name w own two  words; $HOME\n");
    assert_eq!(bench.read("group").trim(), bench.read("pid").trim(), "it leads its own group");
}

/// An old foreman names a program, which gets the number of its task.
#[tokio::test]
async fn a_command_without_words_gets_its_number() {
    let bench = Bench::new();
    let frame = bench.path("frame");
    fs::write(&frame, "#!/bin/sh\necho $# $1 > out\n").unwrap();
    fs::set_permissions(&frame, fs::Permissions::from_mode(0o755)).unwrap();
    let task = Task { argv: Vec::new(), command: "./frame".to_owned(), ..bench.shell("") };
    assert_eq!(end(&bench.run(task).await), (true, Some(0), None, "done"));
    assert_eq!(bench.read("out"), "1 3\n");
}

#[tokio::test]
async fn failures_have_their_words() {
    let bench = Bench::new();
    fs::write(bench.path("plain"), "no program").unwrap();
    fs::write(bench.path("orphan"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(bench.path("orphan"), fs::Permissions::from_mode(0o755)).unwrap();
    let words =
        |words: &[&str]| Task { argv: words.iter().map(|word| (*word).to_owned()).collect(), ..bench.shell("") };
    let nowhere = Task { working_dir: "/no/such/place".to_owned(), ..words(&["true"]) };
    let table = [
        (bench.shell("echo out; echo one >&2; echo two >&2; exit 3"), (Some(3), None, "exit 3: two")),
        (bench.shell("exit 4"), (Some(4), None, "exit 4")),
        (bench.shell("kill -9 $$"), (None, Some(9), "killed by signal 9")),
        (words(&["no-such-program"]), (Some(127), None, "not found: no-such-program")),
        (words(&["./sim", "1"]), (Some(127), None, "not found: ./sim")),
        (words(&["plain/sim"]), (Some(127), None, "not found: plain/sim")),
        (words(&["./plain"]), (Some(126), None, "cannot run: ./plain (permission denied)")),
        (words(&["./orphan"]), (Some(126), None, "cannot run: ./orphan (its interpreter is missing)")),
        (words(&["a\0b"]), (Some(126), None, "cannot run: a\0b (nul byte found in provided data)")),
        (words(&[""]), (Some(126), None, "cannot run:  (the task names no program)")),
        (nowhere, (None, None, "no such directory: /no/such/place")),
    ];
    for (task, (code, signal, status)) in table {
        assert_eq!(end(&bench.run(task).await), (false, code, signal, status));
    }
    let long = words(&["true", &"x".repeat(200_000)]);
    let update = bench.run(long).await;
    assert_eq!(end(&update), (false, Some(126), None, "cannot run: true (argument list too long)"));
}

/// The program is looked for where the task says.
#[tokio::test]
async fn a_task_has_its_own_path() {
    let bench = Bench::new();
    fs::create_dir(bench.path("bin")).unwrap();
    fs::write(bench.path("bin/mine"), "#!/bin/sh\nexit 5\n").unwrap();
    fs::set_permissions(bench.path("bin/mine"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut task = Task { argv: vec!["mine".to_owned()], ..bench.shell("") };
    assert_eq!(bench.run(task.clone()).await.status, "not found: mine");
    task.env.insert("PATH".to_owned(), bench.path("bin").display().to_string());
    assert_eq!(bench.run(task).await.status, "exit 5");
}

/// Where its directory is missing and need not be there, a task has one of its own while it runs.
#[tokio::test]
async fn a_directory_of_its_own() {
    let bench = Bench::new();
    let out = bench.path("out").display().to_string();
    let mut task = bench.shell(&format!("pwd > {out}; echo x > file"));
    (task.working_dir, task.dir_optional) = ("/no/such/place".to_owned(), true);
    assert!(bench.run(task).await.success);
    let own = bench.path("turno-w/task-7.3.2");
    assert_eq!(bench.read("out").trim(), own.display().to_string());
    assert!(!own.exists());
}

/// A worker whose own directory is out of use fails the task that needs one, with words for it, and goes on.
#[tokio::test]
async fn no_directory_of_its_own() {
    let bench = Bench::new();
    fs::remove_dir_all(bench.path("turno-w")).unwrap();
    fs::write(bench.path("turno-w"), "in the way").unwrap();
    let homeless = Task { working_dir: "/no/such/place".to_owned(), dir_optional: true, ..bench.shell("true") };
    assert_eq!(end(&bench.run(homeless).await), (false, None, None, "cannot create directory (not a directory)"));
    assert!(bench.run(bench.shell("true")).await.success);
}

/// Proves that a time limit ends the whole group: TERM, and KILL for what ignores it.
#[tokio::test]
async fn a_task_that_had_its_time() {
    let bench = Bench::new();
    let mut task = bench.shell("trap 'echo bye > bye; exit 0' TERM; sleep 60 & wait");
    task.time_limit = 300;
    assert_eq!(end(&bench.run(task).await), (false, None, None, "time limit of 300ms"));
    assert_eq!(bench.read("bye"), "bye\n", "it was asked first, and an exit status of 0 is no success then");
}

/// Proves S4.56 with real processes: forks that ignore TERM are killed with the rest, and the end comes after theirs.
#[tokio::test]
async fn a_stubborn_task_is_killed_with_all_it_started() {
    let bench = Bench::new();
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; for i in $(seq 600); do sleep 0.1; done' & \
                  echo $$ $! > new; mv new pids; for i in $(seq 600); do sleep 0.1; done";
    let before = Instant::now();
    let update = bench.run_until(bench.shell(script), "pids", TaskOrder::Cancel).await;
    assert!(before.elapsed() >= GRACE, "time limit exceeded");
    assert_eq!(end(&update), (false, None, None, "cancelled"));
    for pid in bench.read("pids").split_whitespace() {
        assert!(is_gone(pid), "the end is told when all is gone");
    }
}

#[tokio::test]
async fn a_cancelled_task_is_told_so() {
    let bench = Bench::new();
    let update = bench.run_until(bench.shell("touch there; exec sleep 60"), "there", TaskOrder::Cancel).await;
    assert_eq!(end(&update), (false, None, None, "cancelled"));
    let unborn = bench.run(bench.shell("touch born")).await;
    assert_eq!(end(&unborn), (false, None, None, "cancelled"));
    assert!(!bench.path("born").exists());
}

#[tokio::test]
async fn a_task_is_given_back() {
    let bench = Bench::new();
    let script = "trap '' TERM; echo $$ > new; mv new pid; for i in $(seq 600); do sleep 0.1; done";
    let update = bench.run_until(bench.shell(script), "pid", TaskOrder::GiveBackNow).await;
    assert_eq!((end(&update), update.given_back), ((false, None, None, "given back"), true));
    assert!(is_gone(bench.read("pid").trim()));
}

/// Background processes of a task have a few seconds, and the task counts as running until they are gone.
#[tokio::test]
async fn what_is_left_in_the_background_ends_with_the_task() {
    let bench = Bench::new();
    let update = bench.run(bench.shell("sleep 60 > /dev/null 2>&1 & echo $! > pid; exit 6")).await;
    assert_eq!(end(&update), (false, Some(6), None, "exit 6"));
    assert!(is_gone(bench.read("pid").trim()));
    let update = bench.run(bench.shell("(sleep 0.3; echo late >&2) & exit 6")).await;
    assert_eq!(update.status, "exit 6: late", "what comes late is heard");
}

#[tokio::test]
async fn output_without_end_is_read_and_does_not_grow() {
    let bench = Bench::new();
    let update = bench.run(bench.shell("head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2; exit 1")).await;
    assert_eq!(update.exit_code, Some(1));
}

/// A task that is dropped leaves nothing behind.
#[tokio::test]
async fn a_task_that_is_dropped_is_killed() {
    let bench = Bench::new();
    let script = "trap '' TERM; echo $$ > new; mv new pid; for i in $(seq 600); do sleep 0.1; done";
    let pid = bench.path("pid");
    tokio::select! {
        update = bench.run(bench.shell(script)) => panic!("{update:?}"),
        () = wait::until_there(&pid) => {}
    }
    wait::until_gone(bench.read("pid").trim()).await;
}

/// A program that somebody has open for writing is started as soon as it is not any more.
#[tokio::test]
async fn a_program_that_is_busy_for_a_moment_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    fs::write(&path, "#!/bin/sh\nexit 7\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let open = fs::File::options().append(true).open(&path).unwrap();
    let mut command = Command::new(&path);
    let busy = command.spawn().unwrap_err();
    assert_eq!(busy.kind(), io::ErrorKind::ExecutableFileBusy);
    let (child, ()) = tokio::join!(spawn(&mut command), async move {
        tokio::task::yield_now().await;
        drop(open);
    });
    assert_eq!(child.unwrap().wait().await.unwrap().code(), Some(7));
}
