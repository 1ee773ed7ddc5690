//! One task with all that is known of it, as programs read it.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::{AttemptView, JobView, TaskReason, TaskView};
use turno_proto::work;

use super::Document;
use super::job::{at, took};
use super::reason::ReasonBody;
use super::submission::SubmissionTask;
use super::task::{TaskRow, state};

/// One attempt of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AttemptRow {
    /// Its number, from 1.
    pub(crate) attempt: u32,
    /// `running`, `finished`, `failed` or `cancelled`.
    pub(crate) state: String,
    /// Its worker; empty if that is not known.
    pub(crate) worker: String,
    /// When it began.
    pub(crate) started_at: Option<String>,
    /// When it ended.
    pub(crate) ended_at: Option<String>,
    /// Seconds that it took.
    pub(crate) seconds: Option<f64>,
    /// What its program returned.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended its program.
    pub(crate) signal: Option<i32>,
    /// What its worker said of a failure; `worker_lost` and `given_back` for one that ended for its worker's reasons.
    pub(crate) status: Option<String>,
}

impl From<&AttemptView> for AttemptRow {
    fn from(view: &AttemptView) -> Self {
        let (started, ended) = (Some(view.started_unix_ms), Some(view.ended_unix_ms));
        Self {
            attempt: view.attempt,
            state: state(view.state).to_owned(),
            worker: view.worker.clone(),
            started_at: started.map(at),
            ended_at: ended.map(at),
            seconds: took(started, ended),
            exit_code: view.exit_code,
            signal: view.signal,
            status: view.status.clone(),
        }
    }
}

/// A task, what it runs, and its attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskBody {
    #[serde(flatten)]
    pub(crate) row: TaskRow,
    /// The name of its job.
    pub(crate) job_name: String,
    /// Slots that it takes.
    pub(crate) slots: u16,
    /// Names of the fields of its item; none where an item has one.
    pub(crate) columns: Vec<String>,
    /// What it runs, with its item and number put in; null if another program wrote the job in a way of its own.
    pub(crate) command: Option<SubmissionTask>,
    /// Why it is where it is.
    pub(crate) because: ReasonBody,
    /// Its attempts in order, the latest last. Earlier ones are known until the broker is started again.
    pub(crate) attempts: Vec<AttemptRow>,
}

impl TaskBody {
    pub(crate) fn new(
        job: &JobView,
        task: &TaskView,
        because: &TaskReason,
        earlier: &[AttemptView],
        command: Option<SubmissionTask>,
    ) -> Self {
        let row = TaskRow::new(job.id, task);
        let mut attempts: Vec<AttemptRow> = earlier.iter().map(AttemptRow::from).collect();
        if let Some(started_at) = &row.started_at {
            attempts.push(AttemptRow {
                attempt: row.attempt,
                state: row.state.clone(),
                worker: row.worker.clone().unwrap_or_default(),
                started_at: Some(started_at.clone()),
                ended_at: row.ended_at.clone(),
                seconds: row.seconds,
                exit_code: row.exit_code,
                signal: row.signal,
                status: row.status.clone(),
            });
        }
        let work = job.spec.as_deref().and_then(|spec| work::decode(&spec.work).ok());
        Self {
            row,
            job_name: job.name.clone(),
            slots: job.slots,
            columns: work.map(|work| work.columns).unwrap_or_default(),
            command,
            because: ReasonBody::from(because),
            attempts,
        }
    }
}

/// One task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TaskDocument {
    pub(crate) task: TaskBody,
}

impl Document for TaskDocument {
    const SCHEMA: &'static str = "turno.task/1";
}
