//! Tasks of jobs: columns, listings, and one task with its attempts.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::{AttemptView, JobView, TaskReason, TaskState, TaskView};
use turno_proto::model::view::Because;
use turno_proto::work;

use super::job::elapsed;
use super::submission::SubmissionTask;
use crate::cli::table::{Column, Row, columns};
use crate::cli::words::one_line;

impl Row for TaskView {
    const COLUMNS: &'static [Column<Self>] = columns![
        id;
        state;
        wide attempt;
        worker;
        wide started_at;
        seconds as "ELAPSED" = |row, clock| elapsed(row.started_at, row.seconds, row.state != TaskState::Running, clock);
        wide exit_code as "EXIT";
        wide task;
        wide signal;
        wide ended_at;
        item = |row, _| one_line(&row.item.join(","));
        status = |row, clock| match row.lost_until {
            Some(until) => format!("worker lost, waiting until {}", clock.until(until)),
            None => one_line(row.status.as_deref().unwrap_or_default()),
        };
    ];

    fn name(&self) -> String {
        self.id.to_string()
    }
}

/// The tasks of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskListDocument<'a> {
    /// The job.
    pub(crate) job: String,
    /// By number.
    pub(crate) tasks: &'a [TaskView],
    /// The value of `--after` for the next page; null at the end.
    pub(crate) next: Option<u32>,
}

/// A task, what it runs, and its attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskBody {
    #[serde(flatten)]
    pub(crate) task: TaskView,
    /// The name of its job.
    pub(crate) job_name: String,
    /// Slots that it takes.
    pub(crate) slots: u16,
    /// Names of the fields of its item; none where an item has one.
    pub(crate) columns: Vec<String>,
    /// Its command, with its item and number put in; null if another program wrote the job in its own form.
    pub(crate) command: Option<SubmissionTask>,
    /// Why it is where it is.
    pub(crate) because: Because<TaskReason>,
    /// Its attempts in order, the latest last. Earlier ones are known until the broker is started again.
    pub(crate) attempts: Vec<AttemptView>,
}

impl TaskBody {
    pub(crate) fn new(
        job: &JobView,
        task: TaskView,
        because: Because<TaskReason>,
        mut attempts: Vec<AttemptView>,
        command: Option<SubmissionTask>,
    ) -> Self {
        if task.started_at.is_some() {
            attempts.push(AttemptView {
                attempt: task.attempt,
                state: task.state,
                worker: task.worker.clone().unwrap_or_default(),
                started_at: task.started_at,
                ended_at: task.ended_at,
                seconds: task.seconds,
                exit_code: task.exit_code,
                signal: task.signal,
                status: task.status.clone(),
            });
        }
        let work = job.spec.as_deref().and_then(|spec| work::decode(&spec.work).ok());
        Self {
            task,
            job_name: job.name.clone(),
            slots: job.slots,
            columns: work.map(|work| work.columns).unwrap_or_default(),
            command,
            because,
            attempts,
        }
    }
}

/// One task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskDocument {
    pub(crate) task: TaskBody,
}

#[cfg(test)]
mod tests {
    use turno_proto::model::job::JobId;
    use turno_proto::model::{Moment, Seconds, TaskId};

    use super::*;
    use crate::cli::schema::{envelope, line};
    use crate::cli::table;
    use crate::cli::time::{Clock, TimeStyle};

    const NOON: u64 = 1_794_744_000_000;

    fn views() -> [TaskView; 3] {
        let id = |task| TaskId { job: JobId(7), task };
        let running = TaskView {
            worker: Some("w1".to_owned()),
            started_at: Some(Moment::from_unix_ms(NOON)),
            ..TaskView::new(id(2), TaskState::Running, 1)
        };
        let failed = TaskView {
            worker: Some("w1".to_owned()),
            started_at: Some(Moment::from_unix_ms(NOON)),
            ended_at: Some(Moment::from_unix_ms(NOON + 2_500)),
            seconds: Some(Seconds::from_millis(2_500)),
            exit_code: Some(2),
            status: Some("no such\nfile".to_owned()),
            item: vec!["a b".to_owned(), "0.5".to_owned()],
            ..TaskView::new(id(10), TaskState::Failed, 3)
        };
        [TaskView::new(id(1), TaskState::Waiting, 0), running, failed]
    }

    #[test]
    fn a_listing_for_people() {
        let clock = Clock::at("2026-11-15T12:01:00Z", TimeStyle::Relative);
        let rows = views();
        let columns = table::choose::<TaskView>(&[], false).unwrap();
        assert_eq!(
            table::render(&columns, &rows, &clock, None),
            "  ID  STATE    WORKER  ELAPSED  ITEM     STATUS\n \
             7.1  waiting  -             -  -        -\n \
             7.2  running  w1         1m0s  -        -\n\
             7.10  failed   w1         2.5s  a b,0.5  no such file\n"
        );
        assert_eq!(rows[2].name(), "7.10");
    }

    /// A task whose worker is lost does not look like one that runs.
    #[test]
    fn a_lost_worker_is_named() {
        let clock = Clock::at("2026-11-15T12:00:05Z", TimeStyle::Utc);
        let row = TaskView { lost_until: Some(Moment::from_unix_ms(NOON + 60_000)), ..views()[1].clone() };
        let columns = table::choose::<TaskView>(&[], false).unwrap();
        let text = table::render(&columns, &[row], &clock, None);
        assert!(text.contains("worker lost, waiting until 2026-11-15T12:01:00.000Z"), "{text}");
    }

    #[test]
    fn a_listing_for_programs() {
        let rows = [views()[2].clone()];
        assert_eq!(
            line(&envelope(&TaskListDocument { job: "7".to_owned(), tasks: &rows, next: Some(10) })),
            "{\"schema\":\"turno.task_list/1\",\"job\":\"7\",\"tasks\":[{\"id\":\"7.10\",\"task\":10,\"state\":\"failed\",\
             \"attempt\":3,\"worker\":\"w1\",\"started_at\":\"2026-11-15T12:00:00.000Z\",\
             \"ended_at\":\"2026-11-15T12:00:02.500Z\",\"seconds\":2.5,\"exit_code\":2,\"signal\":null,\
             \"status\":\"no such\\nfile\",\"lost_until\":null,\"item\":[\"a b\",\"0.5\"]}],\"next\":10}\n"
        );
    }
}
