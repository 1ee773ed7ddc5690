//! Jobs, as programs read them.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::{JobState, JobView};

use super::Document;
use super::error::ErrorBody;
use super::failures::FailuresBody;
use super::reason::ReasonBody;
use super::spec::SpecBody;
use super::worker::moment;
use crate::cli::progress::percent;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, rfc3339, seconds, short};
use crate::cli::words::one_line;

/// A job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobRow {
    /// Its number.
    pub(crate) id: String,
    /// Its name; need not be unique.
    pub(crate) name: String,
    /// `waiting`, `running`, `held`, `finished`, `failed` or `cancelled`.
    pub(crate) state: String,
    /// The numbers of its tasks.
    pub(crate) array: String,
    /// How many tasks it has.
    pub(crate) tasks: u32,
    /// Tasks that wait for a slot, for the job or for their next attempt.
    pub(crate) waiting: u32,
    /// Tasks that workers have.
    pub(crate) running: u32,
    /// Those of them whose worker is lost and may still come back.
    pub(crate) lost: u32,
    /// Tasks that did what they should.
    pub(crate) finished: u32,
    /// Tasks that did not, and have no attempt left.
    pub(crate) failed: u32,
    /// Tasks that somebody ended.
    pub(crate) cancelled: u32,
    /// Slots that a task takes.
    pub(crate) slots: u16,
    /// Its priority, 9 first.
    pub(crate) priority: u8,
    /// Percent of its tasks that have ended, rounded down.
    pub(crate) progress: u64,
    /// Words to find it by.
    pub(crate) tags: Vec<String>,
    /// Items that its tasks are for, one each; 0 if their numbers say it all.
    pub(crate) items: u32,
    /// When it came.
    pub(crate) submitted_at: String,
    /// When its first task was given to a worker; null if none was.
    pub(crate) started_at: Option<String>,
    /// When its last task ended; null if it goes on.
    pub(crate) ended_at: Option<String>,
    /// Seconds from its start to its end; null before. In a table: so far.
    pub(crate) seconds: Option<f64>,
    /// Why nothing of it is started now; null if something is, or if it has ended, unless because too many tasks failed or
    /// a job that it depends on ended otherwise.
    pub(crate) because: Option<ReasonBody>,
    /// Its failed tasks, those that failed alike together; left out where they are not read, or if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failures: Option<FailuresBody>,
}

impl From<&JobView> for JobRow {
    fn from(view: &JobView) -> Self {
        Self {
            id: view.id.to_string(),
            name: view.name.clone(),
            state: state(view.state).to_owned(),
            array: view.numbers().to_string(),
            tasks: view.array.count,
            waiting: view.tasks.waiting,
            running: view.tasks.running,
            lost: view.lost,
            finished: view.tasks.finished,
            failed: view.tasks.failed,
            cancelled: view.tasks.cancelled,
            slots: view.slots,
            priority: view.priority,
            progress: progress(view),
            tags: view.tags.clone(),
            items: view.items,
            submitted_at: at(view.submitted_unix_ms),
            started_at: view.started_unix_ms.map(at),
            ended_at: view.ended_unix_ms.map(at),
            seconds: took(view.started_unix_ms, view.ended_unix_ms),
            because: view.reason.as_ref().map(ReasonBody::from),
            failures: None,
        }
    }
}

fn progress(view: &JobView) -> u64 {
    let tasks = &view.tasks;
    let ended = [tasks.finished, tasks.failed, tasks.cancelled].map(u64::from).iter().sum();
    percent(ended, u64::from(tasks.waiting) + u64::from(tasks.running) + ended)
}

/// A moment of the broker's clock. One that no calendar has is the last one that it has.
pub(super) fn at(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    rfc3339(moment.unwrap_or(Timestamp::MAX))
}

/// Seconds from a start to an end.
pub(super) fn took(started_ms: Option<u64>, ended_ms: Option<u64>) -> Option<f64> {
    Some(seconds(ended_ms?.saturating_sub(started_ms?)))
}

/// How long something took, or has taken so far: for people.
pub(in crate::cli) fn elapsed(started_at: Option<&str>, seconds: Option<f64>, is_over: bool, clock: &Clock) -> String {
    match started_at.and_then(|at| at.parse().ok()) {
        Some(started) if !is_over => short(clock.since(started)),
        _ => span(seconds),
    }
}

/// Seconds for people.
pub(super) fn span(seconds: Option<f64>) -> String {
    let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    span.map(short).unwrap_or_default()
}

const fn state(state: JobState) -> &'static str {
    match state {
        JobState::Waiting => "waiting",
        JobState::Running => "running",
        JobState::Held => "held",
        JobState::Finished => "finished",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

impl Document for JobRow {
    const SCHEMA: &'static str = "turno.job_row/1";
}

/// Without blanks, so that `awk` counts right.
fn one_word(tags: &[String]) -> String {
    one_line(&tags.join(",")).replace(' ', "_")
}

impl Row for JobRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("id", |row, _| row.id.clone()),
        Column::new("name", |row, _| one_line(&row.name)),
        Column::new("state", |row, _| row.state.clone()),
        Column::new("progress", |row, _| format!("{}%", row.progress)),
        Column::new("tasks", |row, _| row.tasks.to_string()),
        Column::new("waiting", |row, _| row.waiting.to_string()),
        Column::new("running", |row, _| row.running.to_string()),
        Column::new("finished", |row, _| row.finished.to_string()),
        Column::new("failed", |row, _| row.failed.to_string()),
        Column::new("cancelled", |row, _| row.cancelled.to_string()),
        Column::new("submitted_at", |row, clock| moment(Some(&row.submitted_at), clock)),
        Column::new("seconds", |row, clock| {
            elapsed(row.started_at.as_deref(), row.seconds, row.ended_at.is_some(), clock)
        }),
        Column::new("tags", |row, _| one_word(&row.tags)),
        Column::wide("lost", |row, _| row.lost.to_string()),
        Column::wide("array", |row, _| row.array.clone()),
        Column::wide("slots", |row, _| row.slots.to_string()),
        Column::wide("priority", |row, _| row.priority.to_string()),
        Column::wide("items", |row, _| row.items.to_string()),
        Column::wide("started_at", |row, clock| moment(row.started_at.as_deref(), clock)),
        Column::wide("ended_at", |row, clock| moment(row.ended_at.as_deref(), clock)),
        Column::wide("because", |row, _| row.because.as_ref().map(|body| body.reason.clone()).unwrap_or_default()),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }
}

/// A job of several for which a command could not be done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobErrorBody {
    /// The job.
    pub(crate) id: String,
    /// Why not.
    pub(crate) error: ErrorBody,
}

/// Jobs: those of a listing, the latest first, or those that a command was done to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobListDocument<'a> {
    pub(crate) jobs: &'a [JobRow],
    /// What `--before` takes for the next page of a listing; null at the end.
    pub(crate) next: Option<String>,
    /// Those for which the command could not be done; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<&'a [JobErrorBody]>,
}

impl Document for JobListDocument<'_> {
    const SCHEMA: &'static str = "turno.job_list/1";
}

/// A job with all that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobBody {
    #[serde(flatten)]
    pub(crate) row: JobRow,
    /// What was asked for; null where the broker does not tell.
    pub(crate) spec: Option<SpecBody>,
}

/// One job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobDocument {
    pub(crate) job: JobBody,
}

impl From<&JobView> for JobDocument {
    fn from(view: &JobView) -> Self {
        Self { job: JobBody { row: JobRow::from(view), spec: view.spec.as_deref().map(SpecBody::from) } }
    }
}

impl Document for JobDocument {
    const SCHEMA: &'static str = "turno.job/1";
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};
    use turno_proto::model::archive::UploadId;
    use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobReason, JobSpec, TaskCounts, Work, WorkFile};
    use turno_proto::work;

    use super::*;
    use crate::cli::schema::{envelope, line};
    use crate::cli::table;
    use crate::cli::time::{Clock, TimeStyle};

    const NOON: u64 = 1_794_744_000_000;

    fn waiting(id: u64) -> JobView {
        JobView {
            id: JobId(id),
            name: "sim".to_owned(),
            state: JobState::Waiting,
            array: Array { first: 0, count: 10, step: 10 },
            parts: Vec::new(),
            tasks: TaskCounts { waiting: 10, ..TaskCounts::default() },
            slots: 1,
            priority: 4,
            tags: vec!["may".to_owned(), "night".to_owned()],
            items: 10,
            submitted_unix_ms: NOON,
            started_unix_ms: None,
            ended_unix_ms: None,
            lost: 0,
            reason: Some(JobReason::NoWorker),
            spec: None,
        }
    }

    fn failed(id: u64) -> JobView {
        JobView {
            state: JobState::Failed,
            tasks: TaskCounts { finished: 7, failed: 2, cancelled: 1, ..TaskCounts::default() },
            started_unix_ms: Some(NOON + 250),
            ended_unix_ms: Some(NOON + 60_750),
            reason: None,
            ..waiting(id)
        }
    }

    fn spec(work: Bytes) -> JobSpec {
        JobSpec {
            time_limit_ms: Some(90_000),
            retries: 1,
            backoff_ms: 1_500,
            max_failures: Some(3),
            labels: vec![("pool".to_owned(), "gpu".to_owned())],
            tags: vec!["may".to_owned()],
            after: vec![After { job: JobId(3), when: AfterWhen::Failed }],
            key: Some("may".to_owned()),
            ..JobSpec::new("sim", Array::ONE, work)
        }
    }

    #[test]
    fn a_listing_for_people() {
        let clock = Clock::at("2026-11-15T12:01:00Z", TimeStyle::Relative);
        let rows: Vec<JobRow> = [failed(12), waiting(7)].iter().map(JobRow::from).collect();
        let columns = table::choose::<JobRow>(&[], false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock),
            "ID  NAME  STATE    PROGRESS  TASKS  WAITING  RUNNING  FINISHED  FAILED  CANCELLED  SUBMITTED_AT  SECONDS  TAGS\n\
             12  sim   failed       100%     10        0        0         7       2          1  1m0s          1m0s     may,night\n \
             7  sim   waiting        0%     10       10        0         0       0          0  1m0s          -        may,night\n"
        );
        let begun = JobView { started_unix_ms: Some(NOON + 30_000), ..waiting(7) };
        let columns = table::choose::<JobRow>(&["id", "seconds"].map(ToOwned::to_owned), false).unwrap();
        let shown = table::render(&columns, &[JobRow::from(&begun)], &clock);
        assert_eq!(shown, "ID  SECONDS\n 7  30s\n", "a job that goes on has taken so long so far");
        let wide = ["id", "array", "seconds", "because"].map(ToOwned::to_owned);
        let columns = table::choose::<JobRow>(&wide, false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock),
            "ID  ARRAY    SECONDS  BECAUSE\n\
             12  0-90:10  1m0s     -\n \
             7  0-90:10  -        no_worker\n"
        );
    }

    #[test]
    fn a_listing_for_programs() {
        let rows = [JobRow::from(&failed(12))];
        let text = line(&envelope(&JobListDocument { jobs: &rows, next: Some("12".to_owned()), errors: None }));
        assert_eq!(
            text,
            "{\"schema\":\"turno.job_list/1\",\"jobs\":[{\"id\":\"12\",\"name\":\"sim\",\"state\":\"failed\",\
             \"array\":\"0-90:10\",\"tasks\":10,\"waiting\":0,\"running\":0,\"lost\":0,\"finished\":7,\"failed\":2,\"cancelled\":1,\
             \"slots\":1,\"priority\":4,\"progress\":100,\"tags\":[\"may\",\"night\"],\"items\":10,\"submitted_at\":\"2026-11-15T12:00:00.000Z\",\
             \"started_at\":\"2026-11-15T12:00:00.250Z\",\"ended_at\":\"2026-11-15T12:01:00.750Z\",\"seconds\":60.5,\
             \"because\":null}],\"next\":\"12\"}\n"
        );
        let errors = [JobErrorBody {
            id: "9".to_owned(),
            error: crate::cli::error::Failure::of(turno_proto::model::Code::JobEnded).body(),
        }];
        let partly = serde_json::to_value(JobListDocument { jobs: &rows, next: None, errors: Some(&errors) }).unwrap();
        assert_eq!(
            (&partly["errors"][0]["id"], &partly["errors"][0]["error"]["code"]),
            (&json!("9"), &json!("job_ended"))
        );
    }

    #[test]
    fn one_job_for_programs() {
        let work = Work {
            argv: vec!["./sim".to_owned()],
            cwd: "/data".to_owned(),
            env: vec![("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned())],
            files: vec![WorkFile { name: "a".to_owned(), upload: UploadId([0xab; 32]), executable: true }],
            collect: vec!["out/*".to_owned()],
            ..Work::default()
        };
        let shown = JobView { spec: Some(Box::new(spec(work::encode(&work).unwrap()))), ..waiting(7) };
        let job = serde_json::to_value(JobDocument::from(&shown)).unwrap()["job"].take();
        assert_eq!((&job["id"], &job["because"]["reason"]), (&json!("7"), &json!("no_worker")));
        assert_eq!(
            job["spec"],
            json!({
                "command": {
                    "argv": ["./sim"],
                    "shell": false,
                    "cwd": "/data",
                    "cwd_optional": false,
                    "env": { "A": "2" },
                    "columns": [],
                    "stdin": null,
                    "files": [{ "name": "a", "sha256": "ab".repeat(32), "executable": true }],
                    "collect": ["out/*"],
                    "out_dir": null,
                },
                "max_parallel": null,
                "time_limit_seconds": 90.0,
                "retries": 1,
                "backoff_seconds": 1.5,
                "max_failures": 3,
                "labels": { "pool": "gpu" },
                "tags": ["may"],
                "after": [{ "job": "3", "when": "failed" }],
                "key": "may",
            })
        );
        let strange = JobView { spec: Some(Box::new(spec(Bytes::from_static(b"no map")))), ..waiting(7) };
        let job = serde_json::to_value(JobDocument::from(&strange)).unwrap()["job"].take();
        assert_eq!(job["spec"]["command"], Value::Null);
        assert_eq!(serde_json::to_value(JobDocument::from(&waiting(7))).unwrap()["job"]["spec"], Value::Null);
    }

    #[test]
    fn a_silly_moment_is_no_panic() {
        let row = JobRow::from(&JobView { submitted_unix_ms: u64::MAX, ended_unix_ms: Some(0), ..failed(7) });
        assert!(row.submitted_at.starts_with("9999-") && row.seconds == Some(0.0), "{row:?}");
    }
}
