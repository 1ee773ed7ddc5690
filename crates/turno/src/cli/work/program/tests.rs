//! Against real programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use std::time::Duration;

use tokio::sync::mpsc;

use super::*;
use crate::process::{GRACE, wait};

fn shell(script: &str) -> Program {
    Program::find(&["sh".into(), "-c".into(), script.into()], false).unwrap().unwrap()
}

fn task(body: impl Into<Bytes>) -> Task {
    Task {
        queue: "q".to_owned(),
        id: "17".to_owned(),
        attempt: 2,
        token: None,
        body: body.into(),
        parts: None,
        reply_bytes_max: Some(1 << 20),
    }
}

/// Runs a script to its own end; also what it wrote to stderr.
async fn run(script: &str, task: Task) -> (RunEnd, String) {
    finish(&shell(script), task).await
}

async fn finish(program: &Program, task: Task) -> (RunEnd, String) {
    let (sender, mut pieces) = mpsc::channel(10_000);
    let run = program.run(task, std::future::pending(), &sender).await;
    drop(sender);
    let mut text = Vec::new();
    while let Some(piece) = pieces.recv().await {
        text.extend_from_slice(&piece);
    }
    (run, String::from_utf8(text).unwrap())
}

fn done(output: &str) -> RunEnd {
    RunEnd::Done(output.into())
}

#[tokio::test]
async fn the_body_goes_in_and_the_reply_comes_out() {
    assert_eq!(run("tr a-z A-Z", task("hello")).await.0, done("HELLO"));
    assert_eq!(run("cat", task(vec![0, 255, 10, 0])).await.0, RunEnd::Done(vec![0, 255, 10, 0].into()));
    let script = "printf '%s %s %s' $TURNO_QUEUE $TURNO_MESSAGE_ID $TURNO_ATTEMPT";
    assert_eq!(run(script, task("")).await.0, done("q 17 2"));
}

#[tokio::test]
async fn a_large_body_and_a_large_reply_do_not_wait_for_each_other() {
    let body = vec![b'x'; 1 << 20];
    assert_eq!(run("cat", task(body.clone())).await.0, RunEnd::Done(body.into()));
}

#[tokio::test]
async fn a_program_need_not_read_its_body() {
    assert_eq!(run("echo ok", task(vec![b'x'; 1 << 20])).await.0, done("ok\n"));
    assert_eq!(run("exec <&-; echo ok", task(vec![b'x'; 1 << 20])).await.0, done("ok\n"));
}

#[tokio::test]
async fn a_failure_carries_the_exit_status_and_the_end_of_stderr() {
    let (end, stderr) = run("echo out; echo one >&2; echo two >&2; exit 3", task("")).await;
    assert_eq!(end, failed("exit 3: one\ntwo"));
    assert_eq!(stderr, "one\ntwo\n");
    assert_eq!(run("exit 4", task("")).await.0, failed("exit 4"));
    assert_eq!(run("kill -9 $$", task("")).await.0, failed("killed by signal 9"));
}

#[tokio::test]
async fn the_end_of_stderr_is_bounded() {
    let script = "i=0; while [ $i -lt 2000 ]; do echo line-$i-ü >&2; i=$((i+1)); done; exit 1";
    let (end, stderr) = run(script, task("")).await;
    let RunEnd::Failed { text, again: Again::AsSet } = end else { panic!("{end:?}") };
    assert!(text.len() <= limits::FAILURE_BYTES_MAX && text.len() > limits::FAILURE_BYTES_MAX - 64);
    assert!(text.starts_with("exit 1: ") && text.ends_with("line-1999-ü"), "{text}");
    assert_eq!(stderr.lines().count(), 2_000);
}

#[tokio::test]
async fn a_program_that_closes_stdout_runs_on() {
    assert_eq!(run("echo ok; exec >&-; sleep 0.2; exit 0", task("")).await.0, done("ok\n"));
    assert_eq!(run("exec >&-; sleep 0.2; exit 5", task("")).await.0, failed("exit 5"));
}

#[tokio::test]
async fn output_without_end_is_stopped_and_never_held() {
    let (sender, _pieces) = mpsc::channel(1_000);
    let program = shell("head -c 1000000000 /dev/zero; echo still here >&2; sleep 600");
    let mut small = task("");
    small.reply_bytes_max = Some(100_000);
    let before = Instant::now();
    let end = program.run(small, std::future::pending(), &sender).await;
    let text = "output_too_large: the program wrote more than 100000 bytes".to_owned();
    assert_eq!(end, RunEnd::Failed { text, again: Again::Never });
    assert!(before.elapsed() < Duration::from_secs(300), "it waited for the program");
}

#[tokio::test]
async fn the_buffer_is_never_larger_than_the_limit() {
    let mut child = Command::new("head").args(["-c", "300000", "/dev/zero"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = Vec::new();
    assert!(collect(child.stdout.take(), &mut output, Some(300_000)).await);
    assert_eq!(output.len(), 300_000);
    assert!(output.capacity() <= 300_000);
    child.wait().await.unwrap();
}

#[tokio::test]
async fn output_that_nobody_wants_is_read_and_forgotten() {
    let mut send = task("");
    send.reply_bytes_max = None;
    assert_eq!(run("head -c 3000000 /dev/zero", send).await.0, done(""));
}

#[tokio::test]
async fn what_is_left_in_the_background_does_not_hold_the_slot_for_ever() {
    let before = Instant::now();
    let (end, _) = run("sleep 600 & echo ok", task("")).await;
    assert_eq!(end, done("ok\n"));
    assert!(before.elapsed() < Duration::from_secs(300), "it waited for the background");
}

/// A delivery that is wanted no more: TERM to the group, and the run ends when all of it is gone.
#[tokio::test]
async fn a_stopped_program_gets_term_first() {
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    let script = format!(
        "trap 'echo bye >&2; exit 0' TERM; (trap '' TERM; sleep 0.3) & touch {}; wait; wait",
        started.display()
    );
    let (sender, _pieces) = mpsc::channel(1_000);
    let program = shell(&script);
    let stop = async {
        wait::until_there(&started).await;
        "timed_out"
    };
    assert_eq!(program.run(task(""), stop, &sender).await, failed("stopped: timed_out: bye"));
}

/// TERM is ignored by the program and by its child: both are killed 5 s later.
#[tokio::test]
async fn a_stubborn_program_is_killed_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let script = format!(
        "trap '' TERM; sh -c 'trap \"\" TERM; for i in $(seq 600); do sleep 0.1; done' & echo $$ $! > {0}.new; mv {0}.new {0}; for i in $(seq 600); do sleep 0.1; done",
        pids.display()
    );
    let (sender, _pieces) = mpsc::channel(1_000);
    let program = shell(&script);
    let stop = async {
        wait::until_there(&pids).await;
        "cancelled"
    };
    let before = Instant::now();
    assert_eq!(program.run(task(""), stop, &sender).await, failed("stopped: cancelled"));
    assert!(before.elapsed() >= GRACE);
    for pid in fs::read_to_string(&pids).unwrap().split_whitespace() {
        wait::until_gone(pid).await;
    }
}

/// A run that is dropped leaves nothing behind.
#[tokio::test]
async fn a_run_that_is_dropped_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!(
        "trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; for i in $(seq 600); do sleep 0.1; done",
        pid.display()
    );
    let (sender, _pieces) = mpsc::channel(1_000);
    let program = shell(&script);
    {
        let run = pin!(program.run(task(""), std::future::pending(), &sender));
        tokio::select! {
            end = run => panic!("{end:?}"),
            () = wait::until_there(&pid) => {}
        }
    }
    wait::until_gone(fs::read_to_string(&pid).unwrap().trim()).await;
}

#[test]
fn a_program_that_cannot_start_is_told_before_anything_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let table = [
        (OsString::from("no-such-program-of-that-name"), "no directory in PATH"),
        (OsString::from("/no/such/program"), "the file does not exist"),
        (plain.clone().into_os_string(), "is not executable"),
        (dir.path().as_os_str().to_owned(), "is not executable"),
    ];
    for (name, why) in table {
        let failure = Program::find(std::slice::from_ref(&name), false).unwrap_err();
        assert_eq!((failure.code(), failure.exit()), (Code::CannotStart, 1));
        let text = failure.render(crate::cli::paint::Paint::plain());
        assert!(text.contains(why), "{text}");
    }
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(Program::find(&[plain.into_os_string()], false).unwrap().is_some());
    assert!(Program::find(&[], false).unwrap().is_none());
}

#[tokio::test]
async fn a_program_that_vanished_fails_the_delivery() {
    let (sender, _pieces) = mpsc::channel(1);
    let program = Program { words: vec!["/no/such/program".into()], lists_parts: false };
    let end = program.run(task(""), std::future::pending(), &sender).await;
    let RunEnd::Failed { text, again: Again::AsSet } = end else { panic!("{end:?}") };
    assert!(text.starts_with("cannot_start: "), "{text}");
}

/// Only a message of several parts has the variable, whatever this process was started with.
#[tokio::test]
async fn the_lengths_of_parts_are_in_the_environment() {
    let script = "printf '%s:' \"${TURNO_PARTS-unset}\"; cat";
    assert_eq!(run(script, task("abc")).await.0, done("unset:abc"));
    let several = Task { parts: Some("1 0 2".to_owned()), ..task("abc") };
    assert_eq!(run(script, several).await.0, done("1 0 2:abc"));
}

#[tokio::test]
async fn a_program_lists_the_parts_of_its_reply() {
    let several = |list: &str, body: &'static str| RunEnd::Done(Message::new(body).header("parts", list));
    let no_list = |why: &str| {
        let text = format!("the first line of the program's output must list the parts of the reply: {why}");
        RunEnd::Failed { text, again: Again::Never }
    };
    let too_many = format!("printf '%s\\n' '{}'", ["0"; 1_025].join(" "));
    let malformed = "invalid list of parts: must be lengths in decimal, separated by one blank";
    let wrong_sum = "invalid list of parts: the lengths add up to another length than the body has";
    let table = [
        ("printf '1 0 2\\nabc'", several("1 0 2", "abc")),
        ("printf '0 0\\n'", several("0 0", "")),
        ("printf '2 2\\na\\n\\n\\n'", several("2 2", "a\n\n\n")),
        ("printf '3\\nabc'", done("abc")),
        ("printf '\\nabc\\n'", done("abc\n")),
        ("echo", done("")),
        ("true", no_list("it is missing, or not text")),
        ("printf '1 2'", no_list("it is missing, or not text")),
        ("printf '\\377\\nabc'", no_list("it is missing, or not text")),
        ("printf 'abc\\nabc'", no_list(malformed)),
        ("printf '1  2\\nabc'", no_list(malformed)),
        ("printf '1 1\\nabc'", no_list(wrong_sum)),
        ("printf '1 18446744073709551615\\nabc'", no_list(wrong_sum)),
        (&too_many, no_list("a message has at most 1024 parts")),
        ("echo 1 1; exit 3", failed("exit 3")),
    ];
    for (script, expected) in table {
        let program = Program { lists_parts: true, ..shell(script) };
        assert_eq!(finish(&program, task("")).await.0, expected, "{script:.60}");
    }
    let send = Task { reply_bytes_max: None, ..task("") };
    let program = Program { lists_parts: true, ..shell("echo no list") };
    assert_eq!(finish(&program, send).await.0, done(""), "nobody wants a reply");
}

/// A program says with its exit status whether the attempt counts, and with the last line of its stderr when to try again.
#[tokio::test]
async fn a_program_says_when_to_try_again() {
    let table = [
        ("exit 1", Again::AsSet),
        ("exit 75", Again::Uncounted(None)),
        ("echo turno-retry-after: 30s >&2; exit 1", Again::After(30_000)),
        ("echo limit >&2; echo turno-retry-after: 1m >&2; exit 75", Again::Uncounted(Some(60_000))),
        ("echo turno-retry-after: 30s >&2; echo other >&2; exit 1", Again::AsSet),
        ("echo turno-retry-after: -5s >&2; exit 1", Again::AsSet),
        ("echo turno-retry-after: soon >&2; exit 75", Again::Uncounted(None)),
    ];
    for (script, expected) in table {
        let RunEnd::Failed { again, .. } = run(script, task("")).await.0 else { panic!("{script}: done") };
        assert_eq!(again, expected, "{script}");
    }
}
