//! Jobs: columns, listings, and one job with its failures.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::JobView;
use turno_proto::model::{Moment, Seconds};

use super::error::ErrorBody;
use super::failures::FailuresBody;
use crate::cli::table::{Column, Row, columns};
use crate::cli::time::{Clock, short};
use crate::cli::words::{one_line, reason_word};

/// A job, and what failed in it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct JobRow {
    #[serde(flatten)]
    pub(crate) job: JobView,
    /// Its failed tasks, those that failed alike together; omitted if they were not read or if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failures: Option<FailuresBody>,
}

impl Deref for JobRow {
    type Target = JobView;

    fn deref(&self) -> &JobView {
        &self.job
    }
}

impl From<&JobView> for JobRow {
    fn from(view: &JobView) -> Self {
        Self { job: view.clone(), failures: None }
    }
}

impl JobRow {
    /// One of several: what was asked for is left out.
    pub(crate) fn listed(view: &JobView) -> Self {
        Self { job: JobView { spec: None, ..view.clone() }, failures: None }
    }
}

/// How long something took, or has taken so far: for people.
pub(in crate::cli) fn elapsed(
    started_at: Option<Moment>,
    seconds: Option<Seconds>,
    is_over: bool,
    clock: &Clock,
) -> String {
    match started_at {
        Some(started) if !is_over => short(clock.since(started)),
        _ => seconds.map(|seconds| short(seconds.duration())).unwrap_or_default(),
    }
}

/// Without blanks, so that `awk` counts right.
fn one_word(tags: &[String]) -> String {
    one_line(&tags.join(",")).replace(' ', "_")
}

impl Row for JobRow {
    const COLUMNS: &'static [Column<Self>] = columns![
        id;
        name = |row, _| one_line(&row.name);
        state;
        progress as "DONE" = |row, _| format!("{}%", row.progress);
        tasks;
        wide waiting = |row, clock| row.counts.waiting.cell(clock);
        running = |row, clock| row.counts.running.cell(clock);
        wide finished = |row, clock| row.counts.finished.cell(clock);
        failed = |row, clock| row.counts.failed.cell(clock);
        wide cancelled = |row, clock| row.counts.cancelled.cell(clock);
        submitted_at;
        wide seconds as "ELAPSED" = |row, clock| elapsed(row.started_at, row.seconds, row.ended_at.is_some(), clock);
        wide tags = |row, _| one_word(&row.tags);
        wide lost;
        wide array;
        wide slots;
        wide priority;
        wide items;
        wide started_at;
        wide ended_at;
        wide because = |row, _| row.because.as_deref().map(reason_word).unwrap_or_default();
    ];

    fn name(&self) -> String {
        self.id.to_string()
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
    /// The value of `--before` for the next page of a listing; null at the end.
    pub(crate) next: Option<String>,
    /// Those for which the command could not be done; omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<&'a [JobErrorBody]>,
}

/// One job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobDocument {
    pub(crate) job: JobRow,
}

impl From<&JobView> for JobDocument {
    fn from(view: &JobView) -> Self {
        Self { job: JobRow::from(view) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};
    use turno_proto::model::archive::UploadId;
    use turno_proto::model::job::{
        After, AfterWhen, Array, JobId, JobReason, JobSpec, JobState, TaskCounts, Work, WorkFile,
    };
    use turno_proto::model::view::Because;
    use turno_proto::work;

    use super::*;
    use crate::cli::schema::{envelope, line};
    use crate::cli::table;
    use crate::cli::time::TimeStyle;

    const NOON: u64 = 1_794_744_000_000;

    fn waiting(id: u64) -> JobView {
        JobView {
            id: JobId(id),
            name: "sim".to_owned(),
            array: Array { first: 0, count: 10, step: 10 }.into(),
            tasks: 10,
            counts: TaskCounts { waiting: 10, ..TaskCounts::default() },
            slots: 1,
            priority: 4,
            tags: vec!["may".to_owned(), "night".to_owned()],
            items: 10,
            submitted_at: Moment::from_unix_ms(NOON),
            because: Some(Because(JobReason::NoWorker)),
            ..JobView::default()
        }
    }

    fn failed(id: u64) -> JobView {
        let (started_at, ended_at) =
            (Some(Moment::from_unix_ms(NOON + 250)), Some(Moment::from_unix_ms(NOON + 60_750)));
        JobView {
            state: JobState::Failed,
            counts: TaskCounts { finished: 7, failed: 2, cancelled: 1, ..TaskCounts::default() },
            progress: 100,
            started_at,
            ended_at,
            seconds: Seconds::between(started_at, ended_at),
            because: None,
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
            table::render(&columns, &rows, &clock, None),
            "ID  NAME  STATE    DONE  TASKS  RUNNING  FAILED  SUBMITTED\n\
             12  sim   failed   100%     10        0       2       1m0s\n \
             7  sim   waiting    0%     10        0       0       1m0s\n"
        );
        let begun = JobView { started_at: Some(Moment::from_unix_ms(NOON + 30_000)), ..waiting(7) };
        let columns = table::choose::<JobRow>(&["id", "seconds"].map(ToOwned::to_owned), false).unwrap();
        let shown = table::render(&columns, &[JobRow::from(&begun)], &clock, None);
        assert_eq!(shown, "ID  ELAPSED\n 7      30s\n", "a job that goes on has taken so long so far");
        let wide = ["id", "array", "seconds", "because"].map(ToOwned::to_owned);
        let columns = table::choose::<JobRow>(&wide, false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock, None),
            "ID  ARRAY    ELAPSED  BECAUSE\n\
             12  0-90:10     1m0s  -\n \
             7  0-90:10        -  no_worker\n"
        );
    }

    #[test]
    fn a_listing_for_programs() {
        let rows = [JobRow::from(&failed(12))];
        let text = line(&envelope(&JobListDocument { jobs: &rows, next: Some("12".to_owned()), errors: None }));
        assert_eq!(
            text,
            "{\"schema\":\"turno.job_list/1\",\"jobs\":[{\"id\":\"12\",\"name\":\"sim\",\"state\":\"failed\",\
             \"array\":\"0-90:10\",\"tasks\":10,\"waiting\":0,\"running\":0,\"finished\":7,\"failed\":2,\"cancelled\":1,\"lost\":0,\
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
        let listed = serde_json::to_value(JobRow::listed(&strange)).unwrap();
        assert_eq!(listed.get("spec"), None, "left out in listings");
    }
}
