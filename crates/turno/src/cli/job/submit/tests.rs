//! Command lines and their jobs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use turno_proto::items;
use turno_proto::model::job::{AfterWhen, Array, JobId, JobSpec, Work};
use turno_proto::model::limits::{JOB_AFTER_MAX, JOB_NAME_BYTES_MAX};
use turno_proto::work;

use super::values::AfterArg;
use super::*;
use crate::cli::output::Output;
use crate::cli::tree;

/// The flags and the job of a command line; or the error. Words are separated by spaces.
fn typed(line: &str) -> Result<(Flags, JobSpec), String> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let cli = tree::parse(&words).map_err(|error| error.to_string())?;
    let tree::Command::Submit(args) = &cli.command else { panic!("{line} submits") };
    let invocation = Invocation { output: Output::new(&cli.global), global: cli.global.clone(), words };
    let told = |failure: Failure| format!("{}; {}", failure.what(), failure.body().why);
    let said = SubmitInput::of(args, &invocation).map_err(told)?;
    let plan = plan(&said.flags, said.command).map_err(told)?;
    Ok((said.flags, plan.spec))
}

fn spec(line: &str) -> JobSpec {
    typed(line).unwrap_or_else(|said| panic!("{line}: {said}")).1
}

fn work_of(line: &str) -> Work {
    work::decode(&spec(line).work).unwrap()
}

fn here() -> String {
    std::env::current_dir().unwrap().to_str().unwrap().to_owned()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// It runs where it was typed if a worker has that place, and nothing in it stands for anything.
#[test]
fn one_command_is_one_task_with_number_1() {
    let spec = spec("turno submit -- /opt/sim --seed {}");
    let argv = strings(&["/opt/sim", "--seed", "{}"]);
    let work = Work { argv, cwd: here(), cwd_optional: true, verbatim: true, ..Work::default() };
    assert_eq!(work::decode(&spec.work), Ok(work));
    assert_eq!(spec, JobSpec::new("sim", Array::ONE, spec.work.clone()));
}

#[test]
fn every_flag_is_in_what_is_asked() {
    let line = "turno submit --array 0-90:10%4 --name may --slots 3 --priority 9 --time-limit 1h --retries 5 --backoff 1m \
                --max-failures 2 --tag a --tag b --tag a --label os=linux --pool gpu --after 7 --after last:any \
                --after 8:failed --hold --key k --cwd /data/{} --env A=1 --env B=x={} --out-dir /logs --wait -- ./sim {}";
    let (flags, spec) = typed(&line.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap();
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        work::decode(&spec.work),
        Ok(Work {
            argv: strings(&["./sim", "{}"]),
            cwd: "/data/{}".to_owned(),
            env: vec![pair("A", "1"), pair("B", "x={}")],
            out_dir: "/logs".to_owned(),
            ..Work::default()
        })
    );
    assert_eq!((spec.array, spec.name.as_str()), (Array { first: 0, count: 10, step: 10 }, "may"));
    assert_eq!((spec.slots, spec.priority, spec.max_parallel), (3, 9, Some(4)));
    assert_eq!((spec.time_limit_ms, spec.retries, spec.backoff_ms), (Some(3_600_000), 5, 60_000));
    assert_eq!((spec.max_failures, spec.tags), (Some(2), strings(&["a", "b"])));
    assert_eq!(spec.labels, [pair("os", "linux"), pair("pool", "gpu")]);
    assert_eq!((spec.hold, spec.key.as_deref(), flags.wait), (true, Some("k"), true));
    let after = |job, when| AfterArg { job, when };
    assert_eq!(
        flags.after,
        [
            after(JobSelector::Id(JobId(7)), AfterWhen::Ok),
            after(JobSelector::Last, AfterWhen::Any),
            after(JobSelector::Id(JobId(8)), AfterWhen::Failed),
        ]
    );
    assert_eq!(flags.backoff, Some(Duration::from_mins(1)));
}

/// A line, its columns and its items.
type Case<'a> = (String, &'a [&'a str], Vec<Vec<&'a str>>);

#[test]
fn a_list_is_a_job_with_an_item_for_each_task() {
    let dir = tempfile::tempdir().unwrap();
    let lines = file(dir.path(), "lines", "a b\nc\n");
    let csv = file(dir.path(), "rows.csv", "rate,name\n0.5,x\n0.7,\"y, z\"\n");
    let json = file(dir.path(), "values", "[\"a\", 2]");
    let glob = dir.path().join("l*s");
    let table: [Case<'_>; 5] = [
        (format!("--each-line {lines} -- ./sim {{}}"), &[], vec![vec!["a b"], vec!["c"]]),
        (format!("--each-csv {csv} -- ./sim {{name}}"), &["rate", "name"], vec![vec!["0.5", "x"], vec!["0.7", "y, z"]]),
        (format!("--each-json {json} -- ./sim {{}}"), &[], vec![vec!["a"], vec!["2"]]),
        (format!("--glob {} -- ./sim {{}}", glob.display()), &[], vec![vec![lines.as_str()]]),
        ("--each x -1 y --hold -- ./sim {}".to_owned(), &[], vec![vec!["x"], vec!["-1"], vec!["y"]]),
    ];
    for (line, columns, expected) in table {
        let spec = spec(&format!("turno submit {line}"));
        let count = u32::try_from(expected.len()).unwrap();
        assert_eq!(spec.array, Array { first: 1, count, step: 1 }, "{line}");
        let work = work::decode(&spec.work).unwrap();
        assert_eq!((work.columns, work.verbatim), (strings(columns), false), "{line}");
        for (place, item) in (0..).zip(expected) {
            assert_eq!(items::get(&spec.items, place), Some(item), "{line}");
        }
    }
}

/// A task with files runs where they are, others where the job was submitted.
#[test]
fn tasks_with_files_have_a_directory_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let data = file(dir.path(), "data.csv", "x");
    let work = work_of(&format!("turno submit --upload {data} {data}=in/again --stdin {data} -- ./sim"));
    let names: Vec<&str> = work.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!((names, work.stdin.is_some()), (vec!["data.csv", "in/again"], true));
    assert_eq!((work.cwd.as_str(), work.cwd_optional), ("", false));
    let work = work_of("turno submit --collect out/* --collect *.log -- ./sim");
    assert_eq!((work.cwd.as_str(), work.collect), ("", strings(&["out/*", "*.log"])));
    let work = work_of(&format!("turno submit --stdin {data} -- ./sim"));
    assert_eq!((work.cwd, work.cwd_optional), (here(), true), "what it reads is no file in its directory");
    let table = [
        ("turno submit -- a", here(), true),
        ("turno submit --cwd sub/ -- a", format!("{}/sub", here()), false),
        ("turno submit --cwd . -- a", here(), false),
        ("turno submit --cwd /data --collect x -- a", "/data".to_owned(), false),
        ("turno submit --cwd /data//x/. -- a", "/data/x".to_owned(), false),
    ];
    for (line, cwd, optional) in table {
        let work = work_of(line);
        assert_eq!((work.cwd, work.cwd_optional), (cwd, optional), "{line}");
    }
}

#[test]
fn a_script_goes_along_and_its_flags_count() {
    let dir = tempfile::tempdir().unwrap();
    let script = file(dir.path(), "run.sh", "#!/bin/sh\n#TURNO --array 1-10%2 --slots 2 --tag s\necho $1\n");
    let (_, spec) = typed(&format!("turno submit {script} --slots 4 --tag c x -- --seed {{}}")).unwrap();
    assert_eq!((spec.name.as_str(), spec.array.count, spec.max_parallel), ("run.sh", 10, Some(2)));
    assert_eq!((spec.slots, spec.tags), (4, strings(&["s", "c"])));
    let work = work::decode(&spec.work).unwrap();
    assert_eq!(work.argv, strings(&["./run.sh", "x", "--seed", "{}"]));
    let files: Vec<_> = work.files.iter().map(|file| (file.name.as_str(), file.executable)).collect();
    assert_eq!((files, work.cwd.as_str()), (vec![("run.sh", true)], ""));
    let work = work_of(&format!("turno submit {script} --cwd /shared"));
    assert_eq!((work.argv, work.cwd.as_str(), work.files.len()), (vec![script.clone()], "/shared", 0));
    let (flags, spec) = typed(&format!("turno submit {script} --each a b -- {{}}")).unwrap();
    assert_eq!((spec.array.count, flags.source.array), (2, None), "the command line says what there is a task for");
}

/// Braces in the name of a directory or script are no placeholders.
#[test]
fn braces_in_names_that_nobody_typed_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let script = file(dir.path(), "a{}b.sh", "#!/bin/sh\n");
    let spec = spec(&format!("turno submit {script} --array 1-3 {{}}"));
    let work = work::decode(&spec.work).unwrap();
    assert_eq!(work.argv, strings(&["./a{{}}b.sh", "{}"]));
    let filled = turno_proto::placeholders::fill(&work, turno_proto::placeholders::PlaceholderValues::number(2));
    assert_eq!(filled.argv, strings(&["./a{}b.sh", "2"]));
    assert_eq!(work_of(&format!("turno submit {script} {{}}")).argv, strings(&["./a{}b.sh", "{}"]));
}

#[test]
fn a_shell_gets_one_line() {
    let work = work_of("turno submit --array 1-3 --shell -- echo\u{a0}{}|sort");
    assert_eq!((work.shell, work.argv), (true, strings(&["echo\u{a0}{}|sort"])));
    assert_eq!(spec("turno submit --shell -- ./sim;ls").name, "sim;ls");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let dir = tempfile::tempdir().unwrap();
    let csv = file(dir.path(), "rows.csv", "rate,name\n0.5,x\n");
    let empty = file(dir.path(), "empty", "");
    let script = file(dir.path(), "run.sh", "#!/bin/sh\n");
    let long = "x".repeat(JOB_NAME_BYTES_MAX + 1);
    let many = "--after 7 ".repeat(JOB_AFTER_MAX + 1);
    let tags: String = (0..17).map(|tag| format!("--tag {tag} ")).collect();
    let labels: String = (0..17).map(|label| format!("--label {label}=x ")).collect();
    let huge = "x".repeat(70_000);
    let table = [
        (String::new(), "SCRIPT"),
        ("sim-that-is-not-there".to_owned(), "cannot read the script"),
        (dir.path().display().to_string(), "is not a file"),
        ("--array 7:2 -- a".to_owned(), "A-B or A-B:STEP"),
        ("--array 1,2-4,3 -- a".to_owned(), "must not overlap"),
        ("--each a b --each c -- a {}".to_owned(), "cannot be used multiple times"),
        ("--slots 65535 -- a".to_owned(), "1 to 65534 slots, not 65535"),
        ("--array 9-1 -- a".to_owned(), "must not decrease"),
        ("--array 1-20000000 -- a".to_owned(), "at most 10000000 tasks"),
        ("--array 0-1000000000 -- a".to_owned(), "at most 10000000 tasks"),
        ("--array 1-3 --each a -- b".to_owned(), "cannot be used with"),
        ("--each-line a --each-csv b -- c".to_owned(), "cannot be used with"),
        ("--glob a --each-json b -- c".to_owned(), "cannot be used with"),
        ("--each -- a".to_owned(), "a value is required"),
        ("--each a b -- sim".to_owned(), "the command has no placeholder"),
        ("--each a b -- sim {{}}".to_owned(), "the command has no placeholder"),
        (format!("--each-line {empty} -- sim {{}}"), "no task in"),
        ("--each-line no-such-file -- sim {}".to_owned(), "cannot read no-such-file"),
        (
            format!("--each-csv {csv} -- sim {{rat}}"),
            "unknown column rat; {rat} is not a column; the columns are {rate}, {name}",
        ),
        (format!("--each-csv {csv} -- sim {{}}"), "name one of {rate}, {name}"),
        (format!("--each-csv {csv} -- sim"), "the command has no placeholder"),
        ("--glob no-such-*-file -- sim {}".to_owned(), "nothing matches"),
        ("--glob a** -- sim {}".to_owned(), "invalid pattern"),
        ("--array 1-3 --shell -- a b".to_owned(), "--shell takes a single command line"),
        ("--array 1-3 --shell -- echo\u{a0}'{}'".to_owned(), "invalid placeholder"),
        (format!("--shell {script}"), "--shell cannot be used with a script"),
        ("--array 1-3 --env {}=1 -- a".to_owned(), "invalid placeholder"),
        (format!("--name {long} -- a"), "1 to 128 bytes"),
        (format!("--key {long} -- a"), "1 to 64 bytes"),
        (format!("--tag {long} -- a"), "1 to 64 bytes"),
        (format!("{tags}-- a"), "at most 16 tags"),
        ("--label gpu -- a".to_owned(), "KEY=VALUE"),
        (format!("--label k={long} -- a"), "at most 64 bytes"),
        (format!("{labels}-- a"), "at most 16 labels"),
        ("--label pool=a --pool b -- a".to_owned(), "conflicting values for label pool: a and b"),
        (format!("--pool {long} -- a"), "1 to 64 bytes"),
        ("--slots 0 -- a".to_owned(), "1..="),
        ("--slots 65536 -- a".to_owned(), "65536"),
        ("--priority 10 -- a".to_owned(), "0..=9"),
        ("--max-parallel 0 -- a".to_owned(), "1.."),
        ("--max-failures -1 -- a".to_owned(), "-1"),
        ("--time-limit 0 -- a".to_owned(), "at least 1ms"),
        ("--time-limit 5 -- a".to_owned(), "250ms"),
        ("--backoff 2h -- a".to_owned(), "must be at most 1h"),
        ("--retries 256 -- a".to_owned(), "256"),
        ("--after 7:never -- a".to_owned(), "ok, any or failed"),
        ("--after x -- a".to_owned(), "invalid job"),
        ("--env A -- a".to_owned(), "KEY=VALUE"),
        (format!("{many}-- a"), "at most 16 jobs"),
        (format!("-- {huge}"), "the command is too long"),
        ("--upload no-such-file -- a".to_owned(), "cannot read no-such-file"),
        ("--stdin no-such-file -- a".to_owned(), "cannot read no-such-file"),
        (format!("--stdin {} -- a", dir.path().display()), "neither a file nor a directory"),
        ("--collect ../x -- a".to_owned(), "relative to the task's directory"),
        ("--collect /etc/* -- a".to_owned(), "relative to the task's directory"),
        ("--collect a[ -- a".to_owned(), "a["),
        (format!("--cwd /data --upload {csv} -- a"), "--cwd cannot be used with"),
        (format!("{script} --upload {csv}=run.sh"), "would both be \"run.sh\""),
    ];
    for (line, expected) in table {
        let Err(said) = typed(format!("turno submit {line}").trim_end()) else { panic!("{line} is refused") };
        assert!(said.contains(expected), "{line}: {said}");
    }
}

#[test]
fn names_come_from_the_program() {
    let table = [("./sim", "sim"), ("/usr/bin/env", "env"), ("sim", "sim"), ("..", ".."), ("/", "/")];
    for (program, expected) in table {
        assert_eq!(spec(&format!("turno submit -- {program}")).name, expected, "{program:?}");
    }
    assert_eq!(spec("turno submit -- ").name, "job");
    let long = "ä".repeat(JOB_NAME_BYTES_MAX);
    assert_eq!(spec(&format!("turno submit -- {long}")).name, "ä".repeat(JOB_NAME_BYTES_MAX / 2));
}
