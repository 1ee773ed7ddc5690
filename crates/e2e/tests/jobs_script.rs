//! The commands about jobs before a broker that answers by script: what they ask, what they print, how they end.

use rustix::process::Signal;
use turno_e2e::{Act, Place, Script, wait};
use turno_proto::model::job::{
    After, AfterWhen, Array, JobId, JobReason, JobState, JobView, TaskCounts, TaskState, TaskView, Work,
};
use turno_proto::model::view::Because;
use turno_proto::model::{Code, Moment, TaskId};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::work;

const NOON: u64 = 1_794_744_000_000;

fn job(id: u64, state: JobState) -> JobView {
    let counts = match state {
        JobState::Finished => TaskCounts { finished: 3, ..TaskCounts::default() },
        JobState::Failed => TaskCounts { finished: 2, failed: 1, ..TaskCounts::default() },
        JobState::Cancelled => TaskCounts { cancelled: 3, ..TaskCounts::default() },
        _ => TaskCounts { waiting: 2, running: 1, ..TaskCounts::default() },
    };
    JobView {
        id: JobId(id),
        name: "sim".to_owned(),
        state,
        array: Array { first: 1, count: 3, step: 1 }.into(),
        tasks: 3,
        counts,
        progress: counts.progress(),
        slots: 1,
        priority: 4,
        submitted_at: Moment::from_unix_ms(NOON),
        started_at: Some(Moment::from_unix_ms(NOON)),
        ended_at: state.is_end().then_some(Moment::from_unix_ms(NOON + 1_000)),
        ..JobView::default()
    }
}

fn told(job: JobView) -> Act {
    Act::Answer(Box::new(AdminAnswer::Job { job: Box::new(job) }))
}

fn task(number: u32, state: TaskState) -> TaskView {
    TaskView {
        worker: Some("w".to_owned()),
        started_at: Some(Moment::from_unix_ms(NOON)),
        ended_at: Some(Moment::from_unix_ms(NOON + 1_000)),
        ..TaskView::new(TaskId { job: JobId(7), task: number }, state, 1)
    }
}

fn place(script: &Script) -> Place {
    let mut place = Place::new();
    place.set_url(script.url());
    place
}

/// Jobs 5 to 8: 5 finished, 6 runs, 7 is held, 8 runs but cannot be changed.
fn four_jobs(call: &AdminCall) -> Act {
    let state = |id| match id {
        5 => Some(JobState::Finished),
        6 | 8 => Some(JobState::Running),
        7 => Some(JobState::Held),
        _ => None,
    };
    let shown = |id: JobId| state(id.0).map_or(Act::Refuse(Code::NotFound), |state| told(job(id.0, state)));
    match call {
        AdminCall::JobLs { before: None, .. } => {
            let jobs = (5..=8).rev().filter_map(|id| state(id).map(|state| job(id, state))).collect();
            Act::Answer(Box::new(AdminAnswer::Jobs { jobs, next: None }))
        }
        AdminCall::JobShow { job } => shown(job.unwrap_or(JobId(8))),
        AdminCall::JobCancel { job: JobId(8), .. } => Act::Refuse(Code::JobEnded),
        AdminCall::JobCancel { job: id, .. } => told(job(id.0, JobState::Cancelled)),
        AdminCall::JobHold { job: id } => told(job(id.0, JobState::Held)),
        AdminCall::JobRelease { job: id } => told(job(id.0, JobState::Running)),
        AdminCall::JobRm { job: JobId(5) } => told(job(5, JobState::Finished)),
        AdminCall::JobRm { .. } => Act::Refuse(Code::JobNotEnded),
        _ => Act::Refuse(Code::BadCall),
    }
}

#[test]
fn a_submission_asks_for_what_was_typed_and_tells_the_job() {
    let script = Script::start(|call| match call {
        AdminCall::JobSubmit { .. } => {
            told(JobView { because: Some(Because(JobReason::NoWorker)), ..job(7, JobState::Waiting) })
        }
        AdminCall::JobShow { job: None } => told(job(6, JobState::Running)),
        _ => Act::Refuse(Code::BadCall),
    });
    let place = place(&script);
    let words = ["submit", "--array", "1-3", "--after", "last:any", "--env", "A=1", "--", "./sim", "-v"];
    let run = place.run(words).expect(0);
    assert_eq!(run.text(), "job 7 (sim) submitted: 3 tasks\n");
    assert!(run.stderr.contains("no job worker") && run.stderr.contains("turno job wait 7"), "{}", run.stderr);
    let asked = script.asked();
    let [AdminCall::JobShow { job: None }, AdminCall::JobSubmit { spec }] = &asked[..] else { panic!("{asked:?}") };
    let here = place.path().canonicalize().expect("our own place");
    let work = Work {
        argv: vec!["./sim".to_owned(), "-v".to_owned()],
        cwd: here.to_str().expect("a plain path").to_owned(),
        env: vec![("A".to_owned(), "1".to_owned())],
        cwd_optional: true,
        ..Work::default()
    };
    assert_eq!(work::decode(&spec.work), Ok(work));
    assert_eq!((spec.name.as_str(), spec.array), ("sim", Array { first: 1, count: 3, step: 1 }));
    assert_eq!(spec.after, [After { job: JobId(6), when: AfterWhen::Any }]);
    let document = place.run(["job", "submit", "--json", "--", "./sim"]).expect(0).document("turno.job/1");
    assert_eq!((&document["job"]["id"], &document["job"]["because"]["reason"]), (&"7".into(), &"no_worker".into()));
    let run = place.run(["submit", "-q", "-o", "name", "--", "./sim"]).expect(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("7\n", ""));
}

/// Each end of the job has its exit status; the document is there in every case.
#[test]
fn a_wait_ends_as_its_jobs_did() {
    let script = Script::start(|call| {
        let end = |id: u64| match id {
            1 => JobState::Finished,
            2 => JobState::Failed,
            _ => JobState::Cancelled,
        };
        match call {
            AdminCall::JobShow { job: Some(id) } => told(job(id.0, JobState::Running)),
            AdminCall::JobWait { job: id } => told(job(id.0, end(id.0))),
            _ => Act::Refuse(Code::BadCall),
        }
    });
    let place = place(&script);
    assert_eq!(place.run(["job", "wait", "1"]).expect(0).text(), "job 1 (sim) finished: 3 finished\n");
    let run = place.run(["job", "wait", "2"]).expect(1);
    assert_eq!(run.text(), "job 2 (sim) failed: 2 finished, 1 failed\n");
    assert!(run.stderr.contains("cannot list the failed tasks of job 2"), "{}", run.stderr);
    assert!(run.stderr.contains("turno job retry 2 --failed"), "{}", run.stderr);
    place.run(["job", "wait", "2", "--ignore-failures"]).expect(0);
    let document = place.run(["job", "wait", "3", "--json"]).expect(1).document("turno.job/1");
    assert_eq!(document["job"]["state"], "cancelled");
    let document = place.run(["job", "wait", "1,2", "3", "--json"]).expect(1).document("turno.job_list/1");
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_wait_that_is_ended_leaves_the_job_and_says_how_to_come_back() {
    let script = Script::start(|call| match call {
        AdminCall::JobShow { .. } | AdminCall::JobSubmit { .. } => told(job(7, JobState::Running)),
        AdminCall::JobWait { .. } => Act::Nothing,
        _ => Act::Refuse(Code::BadCall),
    });
    let place = place(&script);
    let run = place.run(["job", "wait", "7", "--timeout", wait::SHORT]).expect(124);
    assert!(run.stderr.contains("has not ended: 2 waiting, 1 running"), "{}", run.stderr);
    assert!(run.stderr.contains("`turno job wait 7`") && run.stderr.contains("code: timed_out"), "{}", run.stderr);
    let waits = || script.asked().iter().filter(|call| matches!(call, AdminCall::JobWait { .. })).count();
    let table: [(&[&str], Signal, i32); 3] = [
        (&["job", "wait", "7"], Signal::INT, 130),
        (&["job", "wait", "7"], Signal::TERM, 143),
        (&["submit", "--wait", "--", "./sim"], Signal::INT, 130),
    ];
    for (words, signal, exit) in table {
        let before = waits();
        let mut running = place.start(words);
        assert!(wait::find(wait::PATIENCE, || (waits() > before).then_some(())).is_some(), "{words:?} waits");
        running.signal(signal);
        assert_eq!(running.end(wait::PATIENCE), exit, "{words:?}");
        running.expect_line("wait again with `turno job wait 7`");
        assert!(!running.stderr().iter().any(|line| line.starts_with("error:")), "{:?}", running.stderr());
    }
    assert!(!script.asked().iter().any(|call| matches!(call, AdminCall::JobCancel { .. })), "nobody cancels it");
}

/// Jobs outlive the broker's runs, and so does a wait for them.
#[test]
fn a_wait_outlives_its_connection() {
    let mut cut = 0;
    let script = Script::start(move |call| match call {
        AdminCall::JobShow { .. } | AdminCall::JobSubmit { .. } => told(job(7, JobState::Running)),
        AdminCall::JobWait { .. } if cut < 2 => {
            cut += 1;
            Act::HangUp
        }
        AdminCall::JobWait { .. } => told(job(7, JobState::Failed)),
        AdminCall::JobTasks { .. } => {
            let tasks = vec![TaskView { exit_code: Some(42), ..task(1, TaskState::Failed) }];
            Act::Answer(Box::new(AdminAnswer::Tasks { tasks, next: None }))
        }
        _ => Act::Refuse(Code::BadCall),
    });
    let run = place(&script).run(["submit", "--wait", "--", "./sim"]).expect(42);
    let end = "job 7 (sim) failed: 2 finished, 1 failed\nCOUNT  FAILURE  TASKS\n    1  exit 42  7.1\n";
    assert_eq!(run.text(), end);
    assert_eq!(run.stderr.matches("connection lost; reconnecting").count(), 2, "{}", run.stderr);
}

/// A range takes those of its jobs for which it makes sense, each is asked once, and what fails does not stop the rest.
#[test]
fn several_jobs_are_changed_in_one_go() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    let run = place.run(["job", "cancel", "5-8", "--yes", "--json"]).expect(3);
    let document = run.document("turno.job_list/1");
    let ids = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str().map(ToOwned::to_owned)).collect()
    };
    assert_eq!((ids(&document["jobs"]), ids(&document["errors"])), (vec!["6".into(), "7".into()], vec!["8".into()]));
    assert_eq!(document["errors"][0]["error"]["code"], "job_ended");
    assert!(run.stderr.contains("warning: job 8:"), "{}", run.stderr);
    assert_eq!(place.run(["job", "release", "all"]).expect(0).text(), "job 7 (sim) runs: 2 waiting, 1 running\n");
    assert_eq!(place.run(["job", "rm", "all", "--yes"]).expect(0).text(), "job 5 (sim) removed\n");
    place.run(["job", "release", "all", "--json"]).expect(0).document("turno.job_list/1");
    place.run(["job", "release", "7", "--json"]).expect(0).document("turno.job/1");
    assert_eq!(place.run(["job", "hold", "6", "last"]).expect(0).text().lines().count(), 2);
    let table: [(&[&str], i32, &str); 5] = [
        (&["job", "cancel", "5", "--yes"], 1, "job_ended"),
        (&["job", "rm", "6", "--yes"], 1, "job_not_ended"),
        (&["job", "show", "9"], 4, "not_found"),
        (&["job", "hold", "20-30"], 4, "not_found"),
        (&["job", "wait", "9"], 4, "not_found"),
    ];
    for (words, exit, code) in table {
        assert_eq!(place.run(words.iter().chain(&["--json"])).expect(exit).error_code(), code, "{words:?}");
    }
}

/// Nobody at a terminal: what destroys is not done without --yes, and the question says what would be.
#[test]
fn what_destroys_is_not_done_without_a_yes() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    let table: [(&[&str], &str); 4] = [
        (&["job", "cancel", "6"], "cancel job 6 (sim), with 2 waiting and 1 running?"),
        (&["job", "cancel", "6.1-2,9"], "cancel tasks 1-2,9 of job 6 (sim)?"),
        (&["job", "cancel", "all"], "cancel 3 jobs, with 6 waiting and 3 running?"),
        (&["job", "rm", "5"], "remove job 5 (sim) and all data of its 3 tasks?"),
    ];
    for (words, question) in table {
        let run = place.run(words).expect(2);
        assert!(run.stderr.contains(question) && run.stderr.contains("code: not_confirmed"), "{}", run.stderr);
    }
    assert!(
        script.asked().iter().all(|call| matches!(call, AdminCall::JobShow { .. } | AdminCall::JobLs { .. })),
        "nothing is changed"
    );
}

#[test]
fn ranges_of_tasks_are_cancelled_in_portions() {
    let script = Script::start(four_jobs);
    place(&script).run(["job", "cancel", "7.1-199:2,500", "--yes"]).expect(0);
    let asked = script.asked();
    let portions: Vec<usize> = asked
        .iter()
        .filter_map(|call| match call {
            AdminCall::JobCancel { job: JobId(7), tasks: Some(ranges) } => Some(ranges.len()),
            _ => None,
        })
        .collect();
    assert_eq!(portions, [64, 37]);
}

/// A retry goes on as long as the broker says that there is more, portion by portion; what it could not do is told.
#[test]
fn tasks_are_retried_in_portions() {
    let script = Script::start(|call| match call {
        AdminCall::JobRetry { job: JobId(8), .. } => Act::Refuse(Code::OverDisk),
        AdminCall::JobRetry { job, tasks, after } => {
            let more = tasks.is_none() && after.is_none();
            let (tasks, next) = if more { (10_000, Some(70_000)) } else { (3, None) };
            Act::Answer(Box::new(AdminAnswer::Retried { job: *job, tasks, next }))
        }
        call => four_jobs(call),
    });
    let place = place(&script);
    assert_eq!(place.run(["job", "retry", "6"]).expect(0).text(), "job 6 (sim): 10003 tasks wait again\n");
    let run = place.run(["job", "retry", "5-8", "--tasks", "1-199:2"]).expect(3);
    assert_eq!(run.text().lines().count(), 3);
    assert!(run.stderr.contains("job 8") && run.stderr.contains("turno job wait 5,6,7"), "{}", run.stderr);
    let document = place.run(["job", "retry", "7.1", "8", "--json"]).expect(3).document("turno.job_retry/1");
    assert_eq!((&document["jobs"][0]["id"], &document["errors"][0]["id"]), (&"7".into(), &"8".into()));
    assert_eq!(place.run(["job", "retry", "8", "--json"]).expect(1).error_code(), "over_disk");
    assert_eq!(place.run(["job", "retry", "all", "--json"]).expect(4).error_code(), "not_found", "none failed");
    let asked: Vec<(u64, Option<usize>, Option<u32>)> = script
        .asked()
        .into_iter()
        .filter_map(|call| match call {
            AdminCall::JobRetry { job, tasks, after } => Some((job.0, tasks.map(|ranges| ranges.len()), after)),
            _ => None,
        })
        .collect();
    assert_eq!(asked[..4], [(6, None, None), (6, None, Some(70_000)), (5, Some(64), None), (5, Some(36), None)]);
}

/// 2,500 tasks with numbers 0, 2, 4 … come in pages; what is asked for is all there, in every format.
#[test]
fn tasks_are_read_through_all_pages() {
    let script = Script::start(|call| match call {
        AdminCall::JobShow { .. } => told(job(7, JobState::Running)),
        AdminCall::JobTasks { after, limit, state: None, .. } => {
            let numbers = (0..2_500).map(|place| place * 2).filter(|number| after.is_none_or(|after| *number > after));
            let limit = usize::try_from(*limit).expect("a page");
            let tasks: Vec<TaskView> = numbers.take(limit).map(|number| task(number, TaskState::Finished)).collect();
            let next = tasks.last().map(|task| task.task).filter(|last| *last < 4_998);
            Act::Answer(Box::new(AdminAnswer::Tasks { tasks, next }))
        }
        _ => Act::Refuse(Code::BadCall),
    });
    let place = place(&script);
    let names = |words: &[&str]| {
        let run = place.run(["job", "tasks"].iter().chain(words).chain(&["-o", "name"])).expect(0);
        run.text().lines().map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    let all = names(&["7"]);
    assert_eq!(
        (all.len(), all.first().map(String::as_str), all.last().map(String::as_str)),
        (2_500, Some("7.0"), Some("7.4998"))
    );
    assert_eq!(names(&["7.1-6,10,13"]), ["7.2", "7.4", "7.6", "7.10"]);
    assert_eq!(names(&["7", "--limit", "2", "--after", "4990"]), ["7.4992", "7.4994"]);
    assert_eq!(names(&["7.0-4000"]).len(), 2_001);
    let document =
        place.run(["job", "tasks", "7", "--limit", "1500", "--json"]).expect(0).document("turno.task_list/1");
    assert_eq!((document["tasks"].as_array().map(Vec::len), &document["next"]), (Some(1_500), &2_998.into()));
    let documents = place.run(["job", "tasks", "7", "-o", "jsonl"]).expect(0).documents();
    assert_eq!((documents.len(), &documents[0]["schema"]), (2_500, &"turno.task_row/1".into()));
    let text = place.run(["job", "tasks", "7"]).expect(0).text();
    assert_eq!(text.lines().count(), 2_501, "a heading and every task");
}

#[test]
fn jobs_are_chosen_by_state_and_number() {
    let script = Script::start(four_jobs);
    let place = place(&script);
    let names = |words: &[&str]| place.run(["job", "ls", "-o", "name"].iter().chain(words)).expect(0).text();
    assert_eq!(names(&[]), "8\n7\n6\n5\n");
    assert_eq!(names(&["--state", "running,held"]), "8\n7\n6\n");
    assert_eq!(names(&["--state", "running", "--limit", "1"]), "8\n");
    assert_eq!(names(&["--state", "failed"]), "");
    let document = place.run(["job", "ls", "--limit", "2", "--json"]).expect(0).document("turno.job_list/1");
    assert_eq!(document["next"], "7", "the script gives more than was asked for");
    let documents = place.run(["job", "ls", "-o", "jsonl"]).expect(0).documents();
    assert!(documents.len() == 4 && documents.iter().all(|row| row["schema"] == "turno.job_row/1"), "{documents:?}");
    place.run(["job", "show", "last", "--json"]).expect(0).document("turno.job/1");
    let text = place.run(["job", "show", "7"]).expect(0).text();
    assert!(text.starts_with("job        7\nname       sim\nstate      held\n"), "{text}");
}
