//! `turno job show JOB.TASK`: what a task is for, what it runs, and what became of its attempts.

use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::Code;
use turno_proto::model::job::{AttemptView, JobSpec, JobView, TaskView};
use turno_proto::placeholders::{self, FilledCommand, PlaceholderValues};
use turno_proto::work;

use super::text::{pairs, words};
use super::{JobClient, named, no_task};
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::schema::job::elapsed;
use crate::cli::schema::submission::SubmissionTask;
use crate::cli::schema::task::{TaskBody, TaskDocument};
use crate::cli::shown::Page;
use crate::cli::table;
use crate::cli::time::Clock;
use crate::cli::words::one_line;

pub(super) async fn show(asked: &JobClient<'_>, view: &JobView, ranges: &[(u32, u32)]) -> Result<u8, Failure> {
    let job = view.id;
    let task = match ranges {
        [(first, last)] if first == last => *first,
        _ => {
            return Err(Failure::new(Code::BadUsage, "only one task can be shown at a time")
                .why("several tasks are given")
                .fix(format!("list them with `turno job tasks {job}.1-20`, or choose one")));
        }
    };
    let (task, because, attempts) = match asked.admin(AdminCall::JobExplain { job, task: Some(task) }).await {
        Ok(AdminAnswer::TaskExplained { task, because, attempts, .. }) => (task, because, attempts),
        Ok(other) => return Err(connect::unexpected(&other)),
        Err(failure) if failure.code() == Code::NotFound => return Err(no_task(view, ranges)),
        Err(failure) => return Err(named(failure, job)),
    };
    let command = view.spec.as_deref().and_then(|spec| command_of(spec, &task));
    let document = TaskDocument { task: TaskBody::new(view, *task, *because, attempts, command) };
    let (output, body) = (&asked.invocation.output, &document.task);
    let TaskView { id, attempt, .. } = body.task;
    output.one(&document, &id.to_string(), || text(body, output.clock()))?;
    if attempt > 0 {
        let all = if attempt > 1 { " --attempt all" } else { "" };
        output.hint(&format!("show its output: turno job logs {id}{all}"));
    }
    Ok(0)
}

/// The command of the task, with its item and number put in; `None` if another program wrote the job in its own form.
fn command_of(spec: &JobSpec, view: &TaskView) -> Option<SubmissionTask> {
    let work = work::decode(&spec.work).ok()?;
    let fields: Vec<&str> = view.item.iter().map(String::as_str).collect();
    let item = Some(&fields[..]).filter(|fields| !fields.is_empty());
    let FilledCommand { argv, cwd, env } = placeholders::fill(&work, PlaceholderValues { task: view.task, item });
    Some(SubmissionTask { task: view.task, argv, cwd, env: env.into_iter().collect() })
}

fn text(task: &TaskBody, clock: &Clock) -> Page {
    let row = &task.task;
    let mut facts = vec![
        ("task", row.id.to_string()),
        ("job", one_line(&task.job_name)),
        ("state", row.state.to_string()),
        ("because", task.because.to_string()),
    ];
    match (&task.columns[..], &row.item[..]) {
        ([], []) => {}
        ([], item) => facts.push(("item", words(item))),
        (columns, item) => {
            let named = columns.iter().zip(item).map(|(column, field)| format!("{column}={field}"));
            facts.push(("item", words(&named.collect::<Vec<_>>())));
        }
    }
    match &task.command {
        Some(command) => {
            facts.push(("command", words(&command.argv)));
            if !command.cwd.is_empty() {
                facts.push(("directory", words(std::slice::from_ref(&command.cwd))));
            }
            if !command.env.is_empty() {
                facts.push(("environment", words(&pairs(&command.env))));
            }
        }
        None => facts.push(("command", "in a format of another program".to_owned())),
    }
    facts.push(("slots", task.slots.to_string()));
    let known = u32::try_from(task.attempts.len()).unwrap_or(u32::MAX);
    if row.attempt == 0 {
        facts.push(("attempts", "none yet".to_owned()));
    } else if known < row.attempt {
        facts.push(("attempts", format!("{}, the latest {known} known", row.attempt)));
    }
    facts.extend(task.attempts.iter().map(|attempt| ("attempt", attempt_line(attempt, clock))));
    table::facts(&facts)
}

/// `2: failed at w1, began 5m0s ago, took 2.5s, exit status 1: no such file`
fn attempt_line(row: &AttemptView, clock: &Clock) -> String {
    let mut line = format!("{}: {} at {}", row.attempt, row.state, one_line(&row.worker));
    if let Some(started) = row.started_at {
        line += &format!(", began {}", clock.phrase(started));
    }
    let took = elapsed(row.started_at, row.seconds, row.ended_at.is_some(), clock);
    if !took.is_empty() {
        line += &format!(", {} {took}", if row.ended_at.is_some() { "took" } else { "for" });
    }
    if let Some(code) = row.exit_code {
        line += &format!(", exit status {code}");
    }
    if let Some(signal) = row.signal {
        line += &format!(", signal {signal}");
    }
    match row.status.as_deref() {
        Some(status) => line + ": " + &one_line(status),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::job::{Array, JobId, JobReason, TaskReason, TaskState, Work};
    use turno_proto::model::view::Because;
    use turno_proto::model::{Moment, Seconds, TaskId};

    use super::*;
    use crate::cli::job::tests::view;
    use crate::cli::time::TimeStyle;

    const NOON: u64 = 1_794_744_000_000;
    const ID: TaskId = TaskId { job: JobId(7), task: 3 };

    fn spec(work: &Work) -> JobSpec {
        JobSpec::new("sim", Array { first: 1, count: 30, step: 1 }, work::encode(work).unwrap())
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn told(view: &JobView, task: &TaskView, because: &TaskReason, attempts: &[AttemptView]) -> String {
        let command = view.spec.as_deref().and_then(|spec| command_of(spec, task));
        let clock = Clock::at("2026-11-15T12:01:00Z", TimeStyle::Relative);
        let because = Because(because.clone());
        text(&TaskBody::new(view, task.clone(), because, attempts.to_vec(), command), &clock).to_string()
    }

    #[test]
    fn a_task_that_failed_twice_in_words() {
        let work = Work {
            argv: owned(&["./sim", "--rate", "{rate}", "{#}"]),
            cwd: "/data/{name}".to_owned(),
            env: vec![("SEED".to_owned(), "{rate} {#}".to_owned())],
            columns: owned(&["name", "rate"]),
            ..Work::default()
        };
        let job = JobView { spec: Some(Box::new(spec(&work))), ..view(7) };
        let task = TaskView {
            worker: Some("w2".to_owned()),
            started_at: Some(Moment::from_unix_ms(NOON + 30_000)),
            ended_at: Some(Moment::from_unix_ms(NOON + 32_500)),
            seconds: Some(Seconds::from_millis(2_500)),
            exit_code: Some(2),
            status: Some("no such\nfile".to_owned()),
            item: owned(&["it's", "0.5"]),
            ..TaskView::new(ID, TaskState::Failed, 2)
        };
        let first = AttemptView {
            attempt: 1,
            state: TaskState::Failed,
            worker: "w1".to_owned(),
            started_at: Some(Moment::from_unix_ms(NOON)),
            ended_at: Some(Moment::from_unix_ms(NOON + 1_000)),
            seconds: Some(Seconds::from_millis(1_000)),
            signal: Some(9),
            ..AttemptView::default()
        };
        let shown = told(&job, &task, &TaskReason::Failed, &[first]);
        let (before, rest) = shown.split_once("because").unwrap();
        assert_eq!(before, "task         7.3\njob          sim\nstate        failed\n");
        let (_, rest) = rest.split_once('\n').unwrap();
        assert_eq!(
            rest,
            "item         'name=it'\\''s' rate=0.5\n\
             command      ./sim --rate 0.5 3\n\
             directory    '/data/it'\\''s'\n\
             environment  'SEED=0.5 3'\n\
             slots        2\n\
             attempt      1: failed at w1, began 1m0s ago, took 1.0s, signal 9\n\
             attempt      2: failed at w2, began 30s ago, took 2.5s, exit status 2: no such file\n"
        );
    }

    #[test]
    fn a_task_by_its_number_and_one_whose_attempts_are_forgotten() {
        let work = Work { argv: owned(&["run", "{}", "{.}"]), ..Work::default() };
        let job = JobView { spec: Some(Box::new(spec(&work))), ..view(7) };
        let because = TaskReason::Waits { why: JobReason::NoWorker, before: 0 };
        let waiting = told(&job, &TaskView::new(ID, TaskState::Waiting, 0), &because, &[]);
        assert!(waiting.contains("command   run 3 3\n"), "{waiting}");
        assert!(waiting.ends_with("slots     2\nattempts  none yet\n"), "{waiting}");
        let running = TaskView {
            worker: Some("w".to_owned()),
            started_at: Some(Moment::from_unix_ms(NOON)),
            ..TaskView::new(ID, TaskState::Running, 3)
        };
        let runs = TaskReason::Runs { worker: "w".to_owned(), for_seconds: Seconds::from_millis(60_000) };
        let running = told(&job, &running, &runs, &[]);
        assert!(running.contains("attempts  3, the latest 1 known\n"), "{running}");
        assert!(running.ends_with("attempt   3: running at w, began 1m0s ago, for 1m0s\n"), "{running}");
        let strange = JobView { spec: Some(Box::new(JobSpec { work: vec![0xC1].into(), ..spec(&work) })), ..view(7) };
        let strange = told(&strange, &TaskView::new(ID, TaskState::Waiting, 0), &because, &[]);
        assert!(strange.contains("in a format of another program"), "{strange}");
    }
}
