//! Submitting a job.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Duration;

use turno_proto::model::Code;
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobSpec, JobView, Numbers, Work, WorkFile};
use turno_proto::{items, submission, work};

use crate::message::millis;
use crate::{Client, Error};

/// A job that is not submitted yet: [`Jobs::submit`](crate::jobs::Jobs::submit) returns it, awaiting it submits the job.
///
/// By default a job has one task, number 1, which takes one slot and is not retried.
///
/// # Cancel safety
///
/// If the future is dropped before it ends, the job may be submitted or not. With a [key](Self::key) it can be submitted
/// again without becoming two jobs.
#[derive(Clone, Debug)]
#[must_use = "a job is submitted when it is awaited"]
pub struct SubmitBuilder {
    client: Client,
    spec: Result<JobSpec, Error>,
    work: Work,
}

impl SubmitBuilder {
    pub(crate) fn new(client: Client, argv: Vec<String>) -> Self {
        let name = argv.first().cloned().unwrap_or_default();
        let spec = JobSpec::new(name, Array::ONE, bytes::Bytes::new());
        Self { client, spec: Ok(spec), work: Work { argv, ..Work::default() } }
    }

    /// A name for people; the program if not set.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with(|spec| spec.name = name.into())
    }

    /// Numbered tasks: in the command, `{}` stands for a task's number.
    pub fn tasks(self, tasks: RangeInclusive<u32>) -> Self {
        let (first, last) = tasks.into_inner();
        self.try_with(|spec| Array::new(first, last, 1).map(|array| spec.array = array))
    }

    /// Numbered tasks as a text: numbers, ranges and steps, for example `1-1000`, `0-90:10` or `1,3,5-8`.
    pub fn array(self, array: impl AsRef<str>) -> Self {
        self.try_with(|spec| {
            Numbers::parse(array.as_ref()).map(|(array, parts)| (spec.array, spec.parts) = (array, parts))
        })
    }

    /// One task per item: in the command, `{}` stands for the item.
    pub fn items<T: AsRef<str>>(self, list: impl IntoIterator<Item = T>) -> Self {
        let mut list = list.into_iter();
        let block = items::Builder::new(1).and_then(|mut block| {
            list.try_for_each(|item| block.push(&[item.as_ref()]))?;
            Ok(block)
        });
        match block {
            Ok(block) => {
                let last = u32::try_from(block.len()).unwrap_or(u32::MAX);
                self.tasks(1..=last).with(|spec| spec.items = block.finish())
            }
            Err(error) => self.try_with(|_| Err(error)),
        }
    }

    /// The number of slots that a task takes.
    pub fn slots(self, slots: u16) -> Self {
        self.with(|spec| spec.slots = slots)
    }

    /// 0 to 9; jobs with 9 start first.
    pub fn priority(self, priority: u8) -> Self {
        self.with(|spec| spec.priority = priority)
    }

    /// How many tasks may run at a time.
    pub fn max_parallel(self, tasks: u32) -> Self {
        self.with(|spec| spec.max_parallel = Some(tasks))
    }

    /// How long one attempt of a task may take.
    pub fn time_limit(self, limit: Duration) -> Self {
        self.with(|spec| spec.time_limit_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How often a task may be tried again after it failed.
    pub fn retries(self, retries: u8) -> Self {
        self.with(|spec| spec.retries = retries)
    }

    /// How long a task waits for its second attempt; each later attempt waits twice as long as the one before.
    pub fn backoff(self, pause: Duration) -> Self {
        self.with(|spec| spec.backoff_ms = millis(pause))
    }

    /// How many tasks may fail. With one more, the rest of the job is cancelled.
    pub fn max_failures(self, tasks: u32) -> Self {
        self.with(|spec| spec.max_failures = Some(tasks))
    }

    /// Start only after another job has ended that way.
    pub fn after(self, job: JobId, when: AfterWhen) -> Self {
        self.with(|spec| spec.after.push(After { job, when }))
    }

    /// Start nothing before the job is [released](crate::jobs::Jobs::release).
    pub fn hold(self) -> Self {
        self.with(|spec| spec.hold = true)
    }

    /// A key that no other job has: submitting the same job again gives the job that came with the key first. Another job
    /// with that key is refused with the code `key_taken`.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|spec| spec.key = Some(key.into()))
    }

    /// A label that a worker must have to run tasks of the job.
    pub fn label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|spec| spec.labels.push((key.into(), value.into())))
    }

    /// A tag to find the job by.
    pub fn tag(self, tag: impl Into<String>) -> Self {
        self.with(|spec| spec.tags.push(tag.into()))
    }

    /// Adds a variable to the environment of the tasks.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.work.env.push((name.into(), value.into()));
        self
    }

    /// The directory that the tasks run in; the worker's own if not set.
    pub fn current_dir(mut self, directory: impl Into<String>) -> Self {
        self.work.cwd = directory.into();
        self
    }

    /// Puts an [uploaded](crate::jobs::Jobs::upload) file into the directory of each task, under this path. Such a task runs in
    /// a directory of its own.
    pub fn file(self, path: impl Into<String>, upload: UploadId) -> Self {
        self.with_file(WorkFile { name: path.into(), upload, executable: false })
    }

    /// The same with a file that can be executed.
    pub fn executable(self, path: impl Into<String>, upload: UploadId) -> Self {
        self.with_file(WorkFile { name: path.into(), upload, executable: true })
    }

    /// The [uploaded](crate::jobs::Jobs::upload) content that each task reads from its standard input.
    pub fn stdin(mut self, upload: UploadId) -> Self {
        self.work.stdin = Some(upload);
        self
    }

    /// A pattern such as `*.png`: files of a task's directory that match are brought back when it has finished;
    /// [`Jobs::files`](crate::jobs::Jobs::files) lists them.
    pub fn collect(mut self, pattern: impl Into<String>) -> Self {
        self.work.collect.push(pattern.into());
        self
    }

    /// The job as a spec, checked by the rules of a submission.
    pub fn spec(self) -> Result<JobSpec, Error> {
        let mut spec = self.spec?;
        spec.uploads = self.work.files.iter().map(|file| file.upload).chain(self.work.stdin).collect();
        spec.uploads.sort_unstable();
        spec.uploads.dedup();
        spec.work = work::encode(&self.work).map_err(invalid)?;
        submission::check(&spec).map_err(invalid)?;
        Ok(spec)
    }

    fn with_file(mut self, file: WorkFile) -> Self {
        self.work.files.push(file);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut JobSpec)) -> Self {
        if let Ok(spec) = &mut self.spec {
            change(spec);
        }
        self
    }

    fn try_with<E>(mut self, change: impl FnOnce(&mut JobSpec) -> Result<(), E>) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        if let Ok(spec) = &mut self.spec
            && let Err(error) = change(spec)
        {
            self.spec = Err(invalid(error));
        }
        self
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::invalid(Code::BadJob, error)
}

impl IntoFuture for SubmitBuilder {
    type Output = Result<JobView, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let jobs = self.client.jobs();
        Box::pin(async move { jobs.submit_spec(self.spec()?).await })
    }
}
