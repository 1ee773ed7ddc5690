//! Texts about jobs.

use std::collections::BTreeMap;

use turno_proto::model::Seconds;
use turno_proto::model::job::{CommandView, JobReason, JobState, JobView, SpecView, TaskCounts};

use super::failures;
use crate::cli::schema::job::{JobRow, elapsed};
use crate::cli::shell::quoted;
use crate::cli::shown::Page;
use crate::cli::table;
use crate::cli::time::{Clock, short};
use crate::cli::words::one_line;

/// A job's number and name.
pub(super) fn title(view: &JobView) -> String {
    format!("job {} ({})", view.id, one_line(&view.name))
}

/// How many tasks are in which state, those without any left out.
pub(super) fn counts(tasks: &TaskCounts) -> String {
    let TaskCounts { waiting, running, finished, failed, cancelled } = *tasks;
    let table = [
        (waiting, "waiting"),
        (running, "running"),
        (finished, "finished"),
        (failed, "failed"),
        (cancelled, "cancelled"),
    ];
    let told: Vec<String> =
        table.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if told.is_empty() { "no task".to_owned() } else { told.join(", ") }
}

/// Running tasks whose worker is lost.
fn lost(count: u32) -> String {
    if count == 0 { String::new() } else { format!(" ({count} on a lost worker, see `turno job tasks`)") }
}

/// So many of them.
pub(super) fn number_of_tasks(count: u64) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

/// The state it came to, in one line.
pub(super) fn state_line(view: &JobView) -> String {
    let state = match view.state {
        JobState::Waiting => "waits",
        JobState::Running => "runs",
        JobState::Held => "is held",
        JobState::Finished => "finished",
        JobState::Failed => "failed",
        JobState::Cancelled => "was cancelled",
    };
    let why = match view.because.as_deref() {
        Some(reason @ JobReason::Missed { .. }) => format!("; {reason}"),
        _ => String::new(),
    };
    format!("{} {state}: {}{why}", title(view), counts(&view.counts))
}

/// All there is to tell of a job.
pub(super) fn whole(row: &JobRow, clock: &Clock) -> Page {
    let moment = |moment| clock.phrase(moment);
    let mut facts = vec![("job", row.id.to_string()), ("name", one_line(&row.name)), ("state", row.state.to_string())];
    if let Some(because) = row.because.as_deref() {
        facts.push(("because", because.to_string()));
    }
    facts.extend([
        (
            "tasks",
            format!("{}, numbers {}{}", row.tasks, row.array, if row.items > 0 { ", one item each" } else { "" }),
        ),
        ("of these", counts(&row.counts) + &lost(row.lost)),
        ("slots", format!("{} a task", row.slots)),
        ("priority", row.priority.to_string()),
        ("submitted", moment(row.submitted_at)),
        ("started", row.started_at.map_or_else(|| "not yet".to_owned(), moment)),
        ("ended", row.ended_at.map_or_else(|| "not yet".to_owned(), moment)),
    ]);
    if row.started_at.is_some() {
        facts.push(("elapsed", elapsed(row.started_at, row.seconds, row.ended_at.is_some(), clock)));
    }
    if let Some(spec) = row.spec.as_deref() {
        facts.extend(asked_for(&spec.into()));
    }
    let mut page = table::facts(&facts);
    if let Some(failures) = &row.failures {
        page.line("");
        page.append(&failures::text(failures));
    }
    page
}

/// The options of a job, as names and values.
pub(super) fn asked_for(spec: &SpecView) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let span = |length: Seconds| short(length.duration());
    match &spec.command {
        Some(command) => facts.extend(command_of(command)),
        None => facts.push(("command", "in a format of another program".to_owned())),
    }
    if let Some(max) = spec.max_parallel {
        facts.push(("at a time", max.to_string()));
    }
    if let Some(seconds) = spec.time_limit_seconds {
        facts.push(("time limit", span(seconds)));
    }
    if spec.retries > 0 {
        facts.push(("retries", format!("{}, the first after {}", spec.retries, span(spec.backoff_seconds))));
    }
    if let Some(max) = spec.max_failures {
        facts.push(("may fail", number_of_tasks(max.into())));
    }
    if !spec.labels.is_empty() {
        facts.push(("labels", words(&pairs(&spec.labels))));
    }
    if !spec.tags.is_empty() {
        facts.push(("tags", words(&spec.tags)));
    }
    if !spec.after.is_empty() {
        let after: Vec<String> = spec.after.iter().map(|after| format!("{}:{}", after.job, after.when)).collect();
        facts.push(("after", after.join(", ")));
    }
    if let Some(key) = &spec.key {
        facts.push(("key", key.clone()));
    }
    facts
}

fn command_of(command: &CommandView) -> Vec<(&'static str, String)> {
    let mut facts = vec![(if command.shell { "shell" } else { "command" }, words(&command.argv))];
    if !command.columns.is_empty() {
        facts.push(("columns", words(&command.columns)));
    }
    if !command.cwd.is_empty() {
        let optional = if command.cwd_optional { ", if the worker has it" } else { "" };
        facts.push(("directory", format!("{}{optional}", command.cwd)));
    }
    if !command.env.is_empty() {
        facts.push(("environment", words(&pairs(&command.env))));
    }
    if let Some(upload) = &command.stdin {
        facts.push(("stdin", format!("sha256 {upload}")));
    }
    if !command.files.is_empty() {
        let names: Vec<String> = command.files.iter().map(|file| file.name.clone()).collect();
        facts.push(("files", words(&names)));
    }
    if !command.collect.is_empty() {
        facts.push(("collects", words(&command.collect)));
    }
    if let Some(dir) = &command.out_dir {
        facts.push(("output in", dir.clone()));
    }
    facts
}

pub(super) fn pairs(map: &BTreeMap<String, String>) -> Vec<String> {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Words as a shell would read them.
pub(super) fn words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobReason, JobSpec, Work};
    use turno_proto::model::view::Because;
    use turno_proto::work;

    use super::*;
    use crate::cli::job::tests::view;
    use crate::cli::time::TimeStyle;

    fn spec() -> JobSpec {
        let argv = ["./sim", "--title", "a b"].map(ToOwned::to_owned).to_vec();
        let env = vec![("SEED".to_owned(), "1 2".to_owned())];
        let work = work::encode(&Work { argv, cwd: "/data".to_owned(), env, ..Work::default() }).unwrap();
        JobSpec {
            slots: 2,
            max_parallel: Some(4),
            time_limit_ms: Some(3_600_000),
            retries: 3,
            backoff_ms: 1_500,
            after: vec![After { job: JobId(3), when: AfterWhen::Ok }, After { job: JobId(4), when: AfterWhen::Any }],
            key: Some("may".to_owned()),
            ..JobSpec::new("sim", Array { first: 1, count: 30, step: 1 }, work)
        }
    }

    #[test]
    fn a_whole_job_in_words() {
        let clock = Clock::at("2026-11-15T12:01:00Z", TimeStyle::Relative);
        let shown = JobView {
            because: Some(Because(JobReason::MaxParallel { max: 4 })),
            spec: Some(Box::new(spec())),
            ..view(7)
        };
        assert_eq!(
            whole(&JobRow::from(&shown), &clock),
            "job          7\n\
             name         sim\n\
             state        running\n\
             because      the limit of 4 running tasks is reached\n\
             tasks        30, numbers 1-30\n\
             of these     20 waiting, 4 running, 6 finished\n\
             slots        2 a task\n\
             priority     4\n\
             submitted    1m0s ago\n\
             started      59s ago\n\
             ended        not yet\n\
             elapsed      59s\n\
             command      ./sim --title 'a b'\n\
             directory    /data\n\
             environment  'SEED=1 2'\n\
             at a time    4\n\
             time limit   1h0m\n\
             retries      3, the first after 1.5s\n\
             after        3:ok, 4:any\n\
             key          may\n"
        );
    }

    #[test]
    fn work_that_cannot_be_read_is_told_as_such() {
        let clock = Clock::at("2026-11-15T12:01:00Z", TimeStyle::Relative);
        let strange = JobSpec { work: vec![0xC1].into(), ..spec() };
        let shown = JobView { spec: Some(Box::new(strange)), ..view(7) };
        assert!(whole(&JobRow::from(&shown), &clock).contains("in a format of another program"));
    }

    #[test]
    fn states_in_one_line() {
        assert_eq!(state_line(&view(7)), "job 7 (sim) runs: 20 waiting, 4 running, 6 finished");
        let counts_now = TaskCounts { finished: 28, failed: 1, cancelled: 1, ..TaskCounts::default() };
        let ended = JobView { state: JobState::Failed, counts: counts_now, ..view(7) };
        assert_eq!(state_line(&ended), "job 7 (sim) failed: 28 finished, 1 failed, 1 cancelled");
        assert_eq!(counts(&TaskCounts::default()), "no task");
        assert_eq!((number_of_tasks(1), number_of_tasks(2)), ("1 task".to_owned(), "2 tasks".to_owned()));
    }
}
