//! Tasks of jobs, as programs read them.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::{JobId, TaskState, TaskView};

use super::Document;
use super::job::{at, elapsed, took};
use super::worker::moment;
use crate::cli::table::{Column, Row};
use crate::cli::words::one_line;

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskRow {
    /// Its job and its number, as commands take it.
    pub(crate) id: String,
    /// Its number.
    pub(crate) task: u32,
    /// `waiting`, `running`, `finished`, `failed` or `cancelled`.
    pub(crate) state: String,
    /// Its latest attempt; 0 if it had none.
    pub(crate) attempt: u32,
    /// The worker of that attempt.
    pub(crate) worker: Option<String>,
    /// When that attempt began.
    pub(crate) started_at: Option<String>,
    /// When it ended.
    pub(crate) ended_at: Option<String>,
    /// Seconds that it took; null while it runs. In a table: so far.
    pub(crate) seconds: Option<f64>,
    /// What its program returned.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended its program.
    pub(crate) signal: Option<i32>,
    /// What its worker said of a failure.
    pub(crate) status: Option<String>,
    /// Of a running task whose worker is lost: when another one gets it, unless its worker comes back; null otherwise.
    pub(crate) lost_until: Option<String>,
    /// The fields of its item, in a job with items; in listings a long item is cut, and ends with `…`.
    pub(crate) item: Vec<String>,
}

impl TaskRow {
    pub(crate) fn new(job: JobId, view: &TaskView) -> Self {
        Self {
            id: format!("{job}.{}", view.task),
            task: view.task,
            state: state(view.state).to_owned(),
            attempt: view.attempt,
            worker: view.worker.clone(),
            started_at: view.started_unix_ms.map(at),
            ended_at: view.ended_unix_ms.map(at),
            seconds: took(view.started_unix_ms, view.ended_unix_ms),
            exit_code: view.exit_code,
            signal: view.signal,
            status: view.status.clone(),
            lost_until: view.lost_until_unix_ms.map(at),
            item: view.item.clone(),
        }
    }
}

pub(super) const fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "waiting",
        TaskState::Running => "running",
        TaskState::Finished => "finished",
        TaskState::Failed => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

impl Document for TaskRow {
    const SCHEMA: &'static str = "turno.task_row/1";
}

fn shown<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

impl Row for TaskRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("id", |row, _| row.id.clone()),
        Column::new("state", |row, _| row.state.clone()),
        Column::new("attempt", |row, _| row.attempt.to_string()),
        Column::new("worker", |row, _| shown(row.worker.as_ref())),
        Column::new("started_at", |row, clock| moment(row.started_at.as_deref(), clock)),
        Column::new("seconds", |row, clock| {
            elapsed(row.started_at.as_deref(), row.seconds, row.state != "running", clock)
        }),
        Column::new("exit_code", |row, _| shown(row.exit_code.as_ref())),
        Column::wide("task", |row, _| row.task.to_string()),
        Column::wide("signal", |row, _| shown(row.signal.as_ref())),
        Column::wide("ended_at", |row, clock| moment(row.ended_at.as_deref(), clock)),
        Column::new("item", |row, _| one_line(&row.item.join(","))),
        Column::new("status", |row, clock| match row.lost_until.as_deref().and_then(|at| at.parse().ok()) {
            Some(until) => format!("worker lost, waiting until {}", clock.until(until)),
            None => one_line(row.status.as_deref().unwrap_or_default()),
        }),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }
}

/// The tasks of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskListDocument<'a> {
    /// The job.
    pub(crate) job: String,
    /// By number.
    pub(crate) tasks: &'a [TaskRow],
    /// What `--after` takes for the next page; null at the end.
    pub(crate) next: Option<u32>,
}

impl Document for TaskListDocument<'_> {
    const SCHEMA: &'static str = "turno.task_list/1";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::schema::{envelope, line};
    use crate::cli::table;
    use crate::cli::time::{Clock, TimeStyle};

    const NOON: u64 = 1_794_744_000_000;

    fn views() -> [TaskView; 3] {
        let waiting = TaskView::new(1, TaskState::Waiting, 0);
        let running = TaskView {
            task: 2,
            state: TaskState::Running,
            attempt: 1,
            worker: Some("w1".to_owned()),
            started_unix_ms: Some(NOON),
            ..waiting.clone()
        };
        let failed = TaskView {
            task: 10,
            state: TaskState::Failed,
            attempt: 3,
            ended_unix_ms: Some(NOON + 2_500),
            exit_code: Some(2),
            status: Some("no such\nfile".to_owned()),
            item: vec!["a b".to_owned(), "0.5".to_owned()],
            ..running.clone()
        };
        [waiting, running, failed]
    }

    #[test]
    fn a_listing_for_people() {
        let clock = Clock::at("2026-11-15T12:01:00Z", TimeStyle::Relative);
        let rows: Vec<TaskRow> = views().iter().map(|view| TaskRow::new(JobId(7), view)).collect();
        let columns = table::choose::<TaskRow>(&[], false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock),
            "  ID  STATE    ATTEMPT  WORKER  STARTED_AT  SECONDS  EXIT_CODE  ITEM     STATUS\n \
             7.1  waiting        0  -       -           -                -  -        -\n \
             7.2  running        1  w1      1m0s        1m0s             -  -        -\n\
             7.10  failed         3  w1      1m0s        2.5s             2  a b,0.5  no such file\n"
        );
        assert_eq!(rows[2].name(), "7.10");
    }

    /// A task whose worker is lost does not look like one that runs.
    #[test]
    fn a_lost_worker_is_named() {
        let clock = Clock::at("2026-11-15T12:00:05Z", TimeStyle::Utc);
        let view = TaskView { lost_until_unix_ms: Some(NOON + 60_000), ..views()[1].clone() };
        let row = TaskRow::new(JobId(7), &view);
        assert_eq!(row.lost_until.as_deref(), Some("2026-11-15T12:01:00.000Z"));
        let columns = table::choose::<TaskRow>(&[], false).unwrap();
        let text = table::render(&columns, &[row], &clock);
        assert!(text.contains("worker lost, waiting until 2026-11-15T12:01:00.000Z"), "{text}");
    }

    #[test]
    fn a_listing_for_programs() {
        let rows = [TaskRow::new(JobId(7), &views()[2])];
        assert_eq!(
            line(&envelope(&TaskListDocument { job: "7".to_owned(), tasks: &rows, next: Some(10) })),
            "{\"schema\":\"turno.task_list/1\",\"job\":\"7\",\"tasks\":[{\"id\":\"7.10\",\"task\":10,\"state\":\"failed\",\
             \"attempt\":3,\"worker\":\"w1\",\"started_at\":\"2026-11-15T12:00:00.000Z\",\
             \"ended_at\":\"2026-11-15T12:00:02.500Z\",\"seconds\":2.5,\"exit_code\":2,\"signal\":null,\
             \"status\":\"no such\\nfile\",\"lost_until\":null,\"item\":[\"a b\",\"0.5\"]}],\"next\":10}\n"
        );
    }
}
