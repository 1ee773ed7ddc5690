//! Jobs: commands that job workers run as numbered tasks. [`Client::jobs`] is the way in.

use std::io::Cursor;
use std::ops::RangeInclusive;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncSeek};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{PAGE_MAX, PIECE_BYTES_MAX};

pub use turno_proto::model::archive::{FileView, OutputPiece, OutputStream, UploadId};
pub use turno_proto::model::job::{
    After, AfterWhen, Array, ArrayError, AttemptView, CommandView, GivenFileView, JobId, JobReason, JobSpec, JobState,
    JobView, Numbers, TaskCounts, TaskNumbers, TaskReason, TaskState, TaskView,
};
pub use turno_proto::model::{TaskId, TaskIdError};

use crate::archive::Archive;
use crate::follow::follow;
use crate::pages::{Pages, answer};
use crate::{Client, Error};

pub use crate::submit::SubmitBuilder;

/// Calls about jobs; [`Client::jobs`] returns it.
///
/// # Cancel safety
///
/// If the future of a call that changes something is dropped before it ends, the change may be made or not. The others change
/// nothing. A call in several round trips says so.
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let client = turno_client::Client::connect(&url).await?;
/// use turno_client::jobs::JobState;
///
/// let job = client.jobs().submit(["render", "--frame", "{}"]).name("film").tasks(1..=1000).await?;
/// assert_eq!((job.state, job.counts.waiting), (JobState::Waiting, 1000));
/// let job = client.jobs().cancel(job.id).await?;
/// assert_eq!(job.state, JobState::Cancelled);
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Jobs {
    client: Client,
}

/// Why a task is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskExplanation {
    /// The job, without its spec.
    pub job: JobView,
    /// View of the task.
    pub task: TaskView,
    /// Why the task is in its state.
    pub reason: TaskReason,
    /// Earlier attempts, in order, as far as the broker remembers them.
    pub attempts: Vec<AttemptView>,
}

impl Jobs {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// A job whose tasks run this command: the program and its arguments. Awaiting it submits the job and gives its
    /// state.
    pub fn submit<T: Into<String>>(&self, command: impl IntoIterator<Item = T>) -> SubmitBuilder {
        SubmitBuilder::new(self.client.clone(), command.into_iter().map(Into::into).collect())
    }

    /// Submits a job that is described by a [spec](SubmitBuilder::spec), for example by that of an
    /// [earlier job](JobView::spec) without items.
    pub async fn submit_spec(&self, spec: JobSpec) -> Result<JobView, Error> {
        self.job(AdminCall::JobSubmit { spec: Box::new(spec) }).await
    }

    /// All jobs, latest first.
    pub fn list(&self) -> Pages<JobView> {
        let client = self.client.clone();
        Pages::new(move |before| {
            let client = client.clone();
            async move {
                let call = AdminCall::JobLs { before, limit: PAGE_MAX };
                answer!(client, call, AdminAnswer::Jobs { jobs, next } => (jobs, next))
            }
        })
    }

    /// One job.
    pub async fn get(&self, job: JobId) -> Result<JobView, Error> {
        self.job(AdminCall::JobShow { job: Some(job) }).await
    }

    /// The job that was submitted last.
    pub async fn latest(&self) -> Result<JobView, Error> {
        self.job(AdminCall::JobShow { job: None }).await
    }

    /// Waits until a job has ended, however long that takes, and gives its last state.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the job goes on.
    pub async fn wait(&self, job: JobId) -> Result<JobView, Error> {
        self.job(AdminCall::JobWait { job }).await
    }

    /// Cancels all tasks of a job that have not ended.
    pub async fn cancel(&self, job: JobId) -> Result<JobView, Error> {
        self.job(AdminCall::JobCancel { job, tasks: None }).await
    }

    /// Cancels these tasks of a job.
    pub async fn cancel_tasks(
        &self,
        job: JobId,
        tasks: impl IntoIterator<Item = RangeInclusive<u32>>,
    ) -> Result<JobView, Error> {
        self.job(AdminCall::JobCancel { job, tasks: Some(ranges(tasks)) }).await
    }

    /// Lets all failed tasks of a job run again, and gives their number.
    ///
    /// # Cancel safety
    ///
    /// Large jobs take several round trips. If the future is dropped before it ends, some of the tasks may run again and
    /// others not; calling it again is safe.
    pub async fn retry(&self, job: JobId) -> Result<u32, Error> {
        self.retry_ranges(job, None).await
    }

    /// Lets these tasks of a job run again, however they ended, and gives the number of those that had ended.
    ///
    /// # Cancel safety
    ///
    /// Large jobs take several round trips. If the future is dropped before it ends, some of the tasks may run again and
    /// others not; calling it again is safe.
    pub async fn retry_tasks(
        &self,
        job: JobId,
        tasks: impl IntoIterator<Item = RangeInclusive<u32>>,
    ) -> Result<u32, Error> {
        self.retry_ranges(job, Some(ranges(tasks))).await
    }

    /// Starts no more tasks of a job until it is [released](Self::release). Running tasks go on.
    pub async fn hold(&self, job: JobId) -> Result<JobView, Error> {
        self.job(AdminCall::JobHold { job }).await
    }

    /// Lets a held job go on.
    pub async fn release(&self, job: JobId) -> Result<JobView, Error> {
        self.job(AdminCall::JobRelease { job }).await
    }

    /// Removes a job that has ended, with its output and files.
    pub async fn remove(&self, job: JobId) -> Result<JobView, Error> {
        self.job(AdminCall::JobRm { job }).await
    }

    /// The tasks of a job, in order of number.
    pub fn tasks(&self, job: JobId) -> Pages<TaskView> {
        self.tasks_by_state(job, None)
    }

    /// The tasks of a job that are in that state, in order of number.
    pub fn tasks_in(&self, job: JobId, state: TaskState) -> Pages<TaskView> {
        self.tasks_by_state(job, Some(state))
    }

    /// Why the most telling task of a job is in its state: the first that waits, or else the first that runs.
    pub async fn explain(&self, job: JobId) -> Result<TaskExplanation, Error> {
        self.explained(job, None).await
    }

    /// Why a task is in its state.
    pub async fn explain_task(&self, job: JobId, task: u32) -> Result<TaskExplanation, Error> {
        self.explained(job, Some(task)).await
    }

    /// The output of all tasks so far, by task, attempt and position.
    pub fn output(&self, job: JobId) -> Pages<OutputPiece> {
        self.output_of(job, None)
    }

    /// The output of these tasks so far.
    pub fn task_output(&self, job: JobId, tasks: impl IntoIterator<Item = RangeInclusive<u32>>) -> Pages<OutputPiece> {
        self.output_of(job, Some(ranges(tasks)))
    }

    /// The output of all tasks as it comes: first the output so far, then each piece as it arrives. The stream ends with the
    /// job, and outlives a lost connection.
    ///
    /// The pieces of one attempt come in order and once. If a piece begins behind the end of the one before it, the bytes in
    /// between were left out: brokers keep the beginning and the end of long output.
    pub fn follow_output(&self, job: JobId) -> Pages<OutputPiece> {
        follow(self.client.clone(), job, None)
    }

    /// The output of these tasks as it comes, until the job ends; see [`follow_output`](Self::follow_output).
    pub fn follow_task_output(
        &self,
        job: JobId,
        tasks: impl IntoIterator<Item = RangeInclusive<u32>>,
    ) -> Pages<OutputPiece> {
        follow(self.client.clone(), job, Some(ranges(tasks)))
    }

    /// The files that tasks of a job brought back, by task and name.
    pub fn files(&self, job: JobId) -> Pages<FileView> {
        let client = self.client.clone();
        Pages::new(move |after| {
            let client = client.clone();
            async move {
                let call = AdminCall::JobFiles { job, after, limit: PAGE_MAX };
                answer!(Archive(&client), call, AdminAnswer::Files { files, next, .. } => (files, next))
            }
        })
    }

    /// The content of a file that a task brought back, in several round trips.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing at the broker.
    pub async fn file(&self, job: JobId, task: u32, name: impl Into<String>) -> Result<Bytes, Error> {
        let name = name.into();
        Archive(&self.client).read(|at| AdminCall::JobFile { job, task, name: name.clone(), at }).await
    }

    /// Stores a file for tasks and gives its id, which a submission passes on as a [file](SubmitBuilder::file) or as
    /// [standard input](SubmitBuilder::stdin). Content that the broker has already is not sent.
    ///
    /// The broker keeps it for an hour, and as long as it knows a job that names it.
    ///
    /// ```
    /// # let broker = turno_broker::Broker::start_loopback()?;
    /// # let url = broker.url();
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let client = turno_client::Client::connect(&url).await?;
    /// let jobs = client.jobs();
    /// let scene = jobs.upload("a cube and a lamp").await?;
    /// let job = jobs.submit(["render", "scene.txt"]).file("scene.txt", scene).collect("*.png").await?;
    /// assert_eq!(jobs.upload_content(scene).await?, "a cube and a lamp");
    /// # Ok::<(), turno_client::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// It takes several round trips. If the future is dropped before it ends, the broker may have all of the file, or a part
    /// that it forgets; uploading it again is safe.
    pub async fn upload(&self, content: impl Into<Bytes>) -> Result<UploadId, Error> {
        Archive(&self.client).put(Cursor::new(content.into())).await
    }

    /// The same for content that does not fit into memory, such as a file. It is read twice from its beginning: for its id, and
    /// to send it. If it changes meanwhile, the call ends with the code `wrong_hash`.
    ///
    /// # Cancel safety
    ///
    /// As that of [`upload`](Self::upload). The position of the reader is undefined afterwards.
    pub async fn upload_from<R>(&self, content: R) -> Result<UploadId, Error>
    where
        R: AsyncRead + AsyncSeek + Unpin,
    {
        Archive(&self.client).put(content).await
    }

    /// The content of an upload, in several round trips.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing at the broker.
    pub async fn upload_content(&self, upload: UploadId) -> Result<Bytes, Error> {
        Archive(&self.client).read(|at| AdminCall::UploadGet { upload, at }).await
    }

    async fn job(&self, call: AdminCall) -> Result<JobView, Error> {
        answer!(self.client, call, AdminAnswer::Job { job } => *job)
    }

    async fn retry_ranges(&self, job: JobId, tasks: Option<Vec<(u32, u32)>>) -> Result<u32, Error> {
        let (mut total, mut after) = (0, None);
        loop {
            let call = AdminCall::JobRetry { job, tasks: tasks.clone(), after };
            let (done, next) = answer!(self.client, call, AdminAnswer::Retried { tasks, next, .. } => (tasks, next))?;
            total += done;
            if next.is_none() {
                return Ok(total);
            }
            after = next;
        }
    }

    fn tasks_by_state(&self, job: JobId, state: Option<TaskState>) -> Pages<TaskView> {
        let client = self.client.clone();
        Pages::new(move |after| {
            let client = client.clone();
            async move {
                let call = AdminCall::JobTasks { job, state, after, limit: PAGE_MAX };
                answer!(client, call, AdminAnswer::Tasks { tasks, next } => (tasks, next))
            }
        })
    }

    async fn explained(&self, job: JobId, task: Option<u32>) -> Result<TaskExplanation, Error> {
        let call = AdminCall::JobExplain { job, task };
        answer!(self.client, call, AdminAnswer::TaskExplained { job, task, because, attempts } => {
            TaskExplanation { job: *job, task: *task, reason: because.0, attempts }
        })
    }

    fn output_of(&self, job: JobId, tasks: Option<Vec<(u32, u32)>>) -> Pages<OutputPiece> {
        let client = self.client.clone();
        Pages::new(move |from| {
            let (client, tasks) = (client.clone(), tasks.clone());
            async move {
                let limit = u32::try_from(PIECE_BYTES_MAX).unwrap_or(u32::MAX);
                let from = from.unwrap_or_default();
                let call = AdminCall::JobOutput { job, tasks, from, after: None, follow: false, limit };
                answer!(Archive(&client), call, AdminAnswer::Output { pieces, next, end, .. } => (pieces, (!end).then_some(next)))
            }
        })
    }
}

fn ranges(tasks: impl IntoIterator<Item = RangeInclusive<u32>>) -> Vec<(u32, u32)> {
    tasks.into_iter().map(RangeInclusive::into_inner).collect()
}
