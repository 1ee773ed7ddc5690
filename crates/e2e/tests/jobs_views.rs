//! What is told of jobs while they run and after: progress, failures in groups, tags, the report; before a broker that
//! answers by script.

use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Act, Place, Script, wait};
use turno_proto::model::job::{Array, JobId, JobReason, JobState, JobView, TaskCounts, TaskState, TaskView};
use turno_proto::model::view::Because;
use turno_proto::model::{Code, Moment, TaskId};
use turno_proto::native::admin::{AdminAnswer, AdminCall};

const NOON: u64 = 1_794_744_000_000;
const LONG: Duration = wait::PATIENCE;

/// Task 3 to 5 and 9 failed alike, 12 in another way.
const FAILED: [u32; 5] = [3, 4, 5, 9, 12];

fn job(id: u64, state: JobState) -> JobView {
    let counts = match state {
        JobState::Finished => TaskCounts { finished: 20, ..TaskCounts::default() },
        JobState::Failed => TaskCounts { finished: 15, failed: 5, ..TaskCounts::default() },
        JobState::Waiting => TaskCounts { waiting: 20, ..TaskCounts::default() },
        _ => TaskCounts { waiting: 8, running: 2, finished: 9, failed: 1, ..TaskCounts::default() },
    };
    JobView {
        id: JobId(id),
        name: "sim".to_owned(),
        state,
        array: Array { first: 1, count: 20, step: 1 }.into(),
        tasks: 20,
        counts,
        progress: counts.progress(),
        slots: 1,
        priority: 4,
        submitted_at: Moment::from_unix_ms(NOON),
        started_at: Some(Moment::from_unix_ms(NOON)),
        ended_at: state.is_end().then_some(Moment::from_unix_ms(NOON + 20_000)),
        because: (state == JobState::Waiting).then_some(Because(JobReason::NoWorker)),
        ..JobView::default()
    }
}

fn task(number: u32) -> TaskView {
    let failed = FAILED.contains(&number);
    let status = match number {
        12 => Some("killed by signal 9".to_owned()),
        _ => failed.then(|| format!("exit 3: cannot open <b>{number}.dat</b>")),
    };
    let state = if failed { TaskState::Failed } else { TaskState::Finished };
    TaskView {
        worker: Some(format!("w{}", number % 3)),
        started_at: Some(Moment::from_unix_ms(NOON + u64::from(number) * 500)),
        ended_at: Some(Moment::from_unix_ms(NOON + u64::from(number) * 1_000)),
        exit_code: if number == 12 { None } else { Some(if failed { 3 } else { 0 }) },
        signal: (number == 12).then_some(9),
        status,
        ..TaskView::new(TaskId { job: JobId(7), task: number }, state, 1)
    }
}

fn answer(answer: AdminAnswer) -> Act {
    Act::Answer(Box::new(answer))
}

fn told(job: JobView) -> Act {
    answer(AdminAnswer::Job { job: Box::new(job) })
}

/// Jobs 1 to 4 and all that is asked of them: 1 finished, 2 failed, 3 runs, 4 waits. The ends of 3 and 4 are never told.
fn four_jobs(call: &AdminCall) -> Act {
    let state = |id: u64| match id {
        1 => Some(JobState::Finished),
        2 => Some(JobState::Failed),
        3 => Some(JobState::Running),
        4 => Some(JobState::Waiting),
        _ => None,
    };
    let shown = |id: u64| state(id).map_or(Act::Refuse(Code::NotFound), |state| told(job(id, state)));
    match call {
        AdminCall::JobShow { job } => shown(job.map_or(4, |id| id.0)),
        AdminCall::JobWait { job } if job.0 > 2 => Act::Nothing,
        AdminCall::JobWait { job } => shown(job.0),
        AdminCall::JobLs { before, limit } => {
            let below = before.map_or(5, |id| id.0.min(5));
            let ids = (1..below).rev().take(usize::try_from(*limit).expect("a page"));
            let jobs: Vec<JobView> = ids.filter_map(|id| state(id).map(|state| job(id, state))).collect();
            let next = jobs.last().map(|job| job.id).filter(|id| id.0 > 1);
            answer(AdminAnswer::Jobs { jobs, next })
        }
        AdminCall::JobTasks { state, after, .. } => {
            let numbers = (1..=20).filter(|number| after.is_none_or(|after| *number > after));
            let tasks = numbers.map(task).filter(|task| state.is_none_or(|state| task.state == state)).collect();
            answer(AdminAnswer::Tasks { tasks, next: None })
        }
        _ => Act::Refuse(Code::BadCall),
    }
}

fn place(script: &Script) -> Place {
    let mut place = Place::new();
    place.set_url(script.url());
    place
}

/// U27: what failed is told in groups wherever the end of a job is told.
#[test]
fn failures_are_told_in_groups() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    let groups = "COUNT  FAILURE                           TASKS\n    \
                  4  exit 3: cannot open <b>#.dat</b>  2.3-5,9\n    \
                  1  killed by signal 9                2.12\n";
    let run = place.run(["job", "wait", "2"]).expect(1);
    assert_eq!(run.text(), format!("job 2 (sim) failed: 15 finished, 5 failed\n{groups}"));
    for hint in ["turno job logs 2 --failed", "turno job retry 2 --failed"] {
        assert!(run.stderr.contains(hint), "{}", run.stderr);
    }
    place.run(["job", "wait", "2", "--ignore-failures"]).expect(0);
    let run = place.run(["job", "show", "2", "-q"]).expect(0);
    assert!(run.text().ends_with(&format!("\n\n{groups}")) && run.stderr.is_empty(), "{}", run.text());
    for words in [["job", "wait", "2", "--json"], ["job", "show", "2", "--json"]] {
        let document = place.run(words).document("turno.job/1");
        let first = &document["job"]["failures"]["groups"][0];
        assert_eq!((&first["count"], &first["exit_code"]), (&4.into(), &3.into()));
        assert_eq!((&first["tasks"], &document["job"]["failures"]["others"]), (&"2.3-5,9".into(), &0.into()));
    }
    let document = place.run(["job", "wait", "1-2", "--json"]).expect(1).document("turno.job_list/1");
    assert_eq!(document["jobs"][1]["failures"]["groups"][1]["signal"], 9);
    assert!(document["jobs"][0].get("failures").is_none(), "nothing of it failed");
}

#[test]
fn a_wait_for_any_job_ends_with_the_first() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    assert_eq!(place.run(["job", "wait", "3", "1", "--any"]).expect(0).text(), "job 1 (sim) finished: 20 finished\n");
    let document = place.run(["job", "wait", "all", "--any", "--json"]).expect(1).document("turno.job_list/1");
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(2), "those that have ended");
}

/// One of two jobs that run ends, and the wait for any is over though the other was named first.
#[test]
fn whichever_job_ends_first_ends_a_wait_for_any() {
    let script = Script::start(|call| match call {
        AdminCall::JobShow { job: Some(id) } => told(job(id.0, JobState::Running)),
        AdminCall::JobWait { job: JobId(8) } => told(job(8, JobState::Finished)),
        AdminCall::JobWait { .. } => Act::Nothing,
        _ => Act::Refuse(Code::BadCall),
    });
    let run = place(&script).run(["job", "wait", "7", "8", "--any"]).expect(0);
    assert_eq!(run.text(), "job 8 (sim) finished: 20 finished\n");
}

/// U6, U8, U28: bars go to stderr and never to stdout; Ctrl-C leaves the jobs running and says how to come back.
#[test]
fn progress_is_drawn_until_somebody_leaves() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    for (words, back) in [(&["job", "progress"][..], "3-4"), (&["job", "progress", "3"], "3")] {
        let before = script.asked().len();
        let mut running = place.start(words.iter().chain(&["--progress", "bar"]));
        let looked = || {
            script
                .asked()
                .iter()
                .skip(before)
                .filter(|call| matches!(call, AdminCall::JobLs { limit: 1..=2, .. }))
                .count()
        };
        assert!(wait::find(LONG, || (looked() > 2).then_some(())).is_some(), "it looks again and again");
        running.signal(Signal::INT);
        assert_eq!(running.end(LONG), 130);
        running.expect_line("job 3 (sim) runs: 8 waiting, 2 running, 9 finished, 1 failed");
        running.expect_line(&format!("hint: turno job progress {back}"));
        let drawn = running.stderr().join("\n");
        assert!(drawn.contains("jobs   [") && drawn.contains("tasks  ["), "{drawn}");
        assert!(running.stdout().is_empty(), "{:?}", running.stdout());
    }
    assert!(!script.asked().iter().any(|call| matches!(call, AdminCall::JobCancel { .. })), "nobody cancels them");
}

#[test]
fn progress_ends_with_its_jobs() {
    let mut looks = 0;
    let script = Script::start(move |call| match call {
        AdminCall::JobLs { .. } => {
            looks += 1;
            let state = if looks < 4 { JobState::Running } else { JobState::Failed };
            answer(AdminAnswer::Jobs { jobs: vec![job(7, state)], next: None })
        }
        AdminCall::JobWait { .. } => Act::Nothing,
        call => four_jobs(call),
    });
    let place = place(&script);
    let run = place.run(["job", "progress", "--progress", "bar"]).expect(0);
    assert!(run.text().starts_with("job 7 (sim) failed: 15 finished, 5 failed\nCOUNT "), "{}", run.text());
    assert!(run.stderr.contains("50%") && run.stderr.contains("1 failed"), "{}", run.stderr);
    let run = place.run(["job", "progress"]).expect(0);
    assert!(run.text().is_empty() && run.stderr.contains("all jobs have ended"), "{}", run.stderr);
    let document = place.run(["job", "progress", "--json"]).expect(0).document("turno.job_list/1");
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(0));
    let run = place.run(["job", "progress", "2", "-q", "--progress", "bar"]).expect(0);
    assert!(run.stderr.is_empty(), "quiet: {}", run.stderr);
    assert_eq!(place.run(["job", "progress", "9", "--json"]).expect(4).error_code(), "not_found");
}

/// Jobs 1 and 3 are of May, 3 and 4 of the night.
fn tagged(call: &AdminCall) -> Act {
    match four_jobs(call) {
        Act::Answer(told) => match *told {
            AdminAnswer::Jobs { mut jobs, next } => {
                for job in &mut jobs {
                    let tags = [("may", job.id.0 % 2 == 1), ("night", job.id.0 > 2)];
                    job.tags = tags.iter().filter(|(_, has)| *has).map(|(tag, _)| (*tag).to_owned()).collect();
                }
                answer(AdminAnswer::Jobs { jobs, next })
            }
            other => answer(other),
        },
        act => act,
    }
}

#[test]
fn jobs_are_chosen_by_tags() {
    let script = Script::start(tagged);
    let place = place(&script);
    let names = |words: &[&str]| place.run(["job", "ls", "-o", "name"].iter().chain(words)).expect(0).text();
    assert_eq!(names(&["--tag", "may"]), "3\n1\n");
    assert_eq!(names(&["--tag", "may", "--tag", "night"]), "3\n");
    assert_eq!(names(&["--tag", "night", "--state", "waiting"]), "4\n");
    let run = place.run(["job", "ls", "--tag", "june"]).expect(0);
    assert!(run.stderr.contains("no job with these tags"), "{}", run.stderr);
    let document = place.run(["job", "ls", "--json"]).expect(0).document("turno.job_list/1");
    let third = &document["jobs"][1];
    assert_eq!((&third["id"], &third["progress"], &third["tags"][1]), (&"3".into(), &50.into(), &"night".into()));
    let text = place.run(["job", "ls", "--columns", "id,progress,tags"]).expect(0).text();
    assert_eq!(text, "ID  DONE  TAGS\n 4    0%  night\n 3   50%  may,night\n 2  100%  -\n 1  100%  may\n");
}

#[test]
fn a_report_is_one_file_that_tells_the_job() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    let run = place.run(["job", "report", "2", "-o", "report.html"]).expect(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("report.html: job 2, 20 tasks\n", ""));
    let file = place.path().join("report.html");
    let page = std::fs::read_to_string(&file).expect("the report");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("exit 3: cannot open &lt;b&gt;#.dat&lt;/b&gt;") && !page.contains("<b>3.dat"), "escaped");
    assert!(page.contains("&#10007; 5</b><span>failed") && page.contains("&#10003; 15</b><span>finished"));
    let run = place.run(["job", "report", "last", "-o", "-"]).expect(0);
    assert!(run.text().contains("<h1>") && run.stderr.is_empty(), "{}", run.stderr);
    for words in [
        &["--json", "job", "report", "2", "-o", "two.html"][..],
        &["job", "report", "2", "--file", "two.html", "-o", "json"],
    ] {
        let document = place.run(words).expect(0).document("turno.report/1");
        assert_eq!(
            (&document["job"], &document["file"], &document["tasks"]),
            (&"2".into(), &"two.html".into(), &20.into())
        );
        let size = std::fs::metadata(place.path().join("two.html")).expect("the report").len();
        assert_eq!(document["bytes"], size);
    }
    let table: [(&[&str], i32, &str); 4] = [
        (&["job", "report", "2"], 2, "bad_usage"),
        (&["job", "report", "2", "-o", "json"], 2, "bad_usage"),
        (&["job", "report", "9", "-o", "nine.html"], 4, "not_found"),
        (&["job", "report", "2", "-o", "no/such/directory.html"], 1, "io"),
    ];
    for (words, exit, code) in table {
        let run = place.run(words).expect(exit);
        assert!(
            run.stderr.contains(&format!("code: {code} ")) || run.text().contains(code),
            "{words:?}: {}",
            run.stderr
        );
    }
    assert!(!place.path().join("nine.html").exists(), "nothing is written of nothing");
    let run = place.run(["job", "ls", "-o", "report.html"]).expect(2);
    assert!(
        run.stderr.contains("invalid value 'report.html'"),
        "only a command that writes a file takes one: {}",
        run.stderr
    );
}
