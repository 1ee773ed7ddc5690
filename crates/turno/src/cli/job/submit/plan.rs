//! The plan of a submission, before the broker is asked.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use turno_proto::items::Shape;
use turno_proto::model::Code;
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{JobSpec, Work, WorkFile};
use turno_proto::model::limits::{
    JOB_AFTER_MAX, JOB_LABELS_MAX, JOB_NAME_BYTES_MAX, JOB_TAGS_MAX, JOB_UPLOADS_MAX, PRIORITY,
};
use turno_proto::placeholders::{self, FillError, PlaceholderValues};
use turno_proto::submission::SpecError;
use turno_proto::{items, submission, work};

use super::each::JobTasks;
use super::flags::Flags;
use super::uploads::{Upload, check_names, too_many};
use crate::cli::error::Failure;
use crate::cli::shell;

/// Stands for an upload until its file is read.
const UNKNOWN: UploadId = UploadId([0; 32]);

/// The command of the tasks.
pub(super) enum TaskCommand {
    /// These words, as they are, at the worker.
    Words(Vec<String>),
    /// A file that goes along with the job, and its arguments.
    Script { path: PathBuf, name: String, args: Vec<String> },
}

/// A job that is about to be submitted.
pub(super) struct SubmitPlan {
    /// All but the jobs it is after and what its files are known by.
    pub(super) spec: JobSpec,
    pub(super) work: Work,
    /// The files of a task, those of `work.files` in their order.
    pub(super) files: Vec<Upload>,
    pub(super) stdin: Option<Upload>,
}

impl SubmitPlan {
    pub(super) fn new(
        flags: &Flags,
        command: TaskCommand,
        tasks: JobTasks,
        mut files: Vec<Upload>,
        stdin: Option<Upload>,
        here: &Path,
    ) -> Result<Self, Failure> {
        check_counts(flags)?;
        let columns = tasks.columns.clone();
        // One command is run as it is typed: `find . -exec ls {} +`.
        let verbatim = flags.is_one();
        let literal = |text: &str| if verbatim { Ok(text.to_owned()) } else { literal(text, &columns) };
        let (argv, default_name) = match command {
            TaskCommand::Words(words) => {
                let name = default_name(words.first().map_or("", String::as_str), flags.shell);
                (words, name)
            }
            TaskCommand::Script { .. } if flags.shell => return Err(no_line()),
            TaskCommand::Script { path, name, args } => {
                let program = match &flags.cwd {
                    // With --cwd the script must be at the workers too.
                    Some(_) => literal(&text_of(&here.join(&path))?)?,
                    None => {
                        files.push(Upload { executable: true, ..Upload::file(&path, &name)? });
                        literal(&format!("./{name}"))?
                    }
                };
                ([vec![program], args].concat(), default_name(&name, false))
            }
        };
        files.sort_by(|a, b| a.name.cmp(&b.name));
        check_names(&files)?;
        let has_files = !files.is_empty() || !flags.collect.is_empty();
        let cwd = match &flags.cwd {
            Some(_) if !files.is_empty() => return Err(two_places()),
            Some(dir) if dir.is_absolute() => text_of(dir)?,
            Some(dir) => format!("{}/{}", literal(&text_of(here)?)?.trim_end_matches('/'), text_of(dir)?),
            None if has_files => String::new(),
            None => literal(&text_of(here)?)?,
        };
        let work = Work {
            argv,
            cwd_optional: flags.cwd.is_none() && !cwd.is_empty(),
            cwd: plain(&cwd),
            env: flags.env.clone(),
            verbatim,
            shell: flags.shell,
            columns: tasks.columns,
            stdin: stdin.as_ref().map(|_| UNKNOWN),
            files: files
                .iter()
                .map(|file| WorkFile { name: file.name.clone(), upload: UNKNOWN, executable: file.executable })
                .collect(),
            collect: flags.collect.clone(),
            out_dir: flags.out_dir.as_deref().map(|dir| text_of(&here.join(dir))).transpose()?.unwrap_or_default(),
        };
        let mut spec = JobSpec {
            slots: flags.slots.unwrap_or(1),
            priority: flags.priority.unwrap_or(PRIORITY),
            max_parallel: flags.at_a_time(),
            time_limit_ms: flags.time_limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            retries: flags.retries.unwrap_or(0),
            backoff_ms: flags.backoff.map_or(0, |backoff| u32::try_from(backoff.as_millis()).unwrap_or(u32::MAX)),
            hold: flags.hold,
            key: flags.key.clone(),
            items: tasks.items,
            labels: labels(flags),
            max_failures: flags.max_failures,
            tags: tags(flags),
            parts: tasks.parts,
            ..JobSpec::new(flags.name.clone().unwrap_or(default_name), tasks.array, Bytes::new())
        };
        check_places(&work, &spec)?;
        spec.work = encoded(&work)?;
        submission::check(&spec).map_err(|rule| broken(&rule))?;
        Ok(Self { spec, work, files, stdin })
    }

    /// The job, now that its files are known: `ids` are those of all of them, what is read from standard input last.
    pub(super) fn with_ids(mut self, ids: &[UploadId]) -> Result<JobSpec, Failure> {
        for (file, id) in self.work.files.iter_mut().zip(ids) {
            file.upload = *id;
        }
        self.work.stdin = self.stdin.as_ref().and_then(|_| ids.last().copied());
        self.spec.uploads = ids.to_vec();
        self.spec.uploads.sort_unstable();
        self.spec.uploads.dedup();
        if self.spec.uploads.len() > JOB_UPLOADS_MAX {
            return Err(too_many());
        }
        self.spec.work = encoded(&self.work)?;
        Ok(self.spec)
    }

    /// All files it has to bring along.
    pub(super) fn uploads(&self) -> impl Iterator<Item = &Upload> {
        self.files.iter().chain(&self.stdin)
    }
}

fn check_counts(flags: &Flags) -> Result<(), Failure> {
    let most = |count: usize, max: usize, what: &str| match count <= max {
        true => Ok(()),
        false => Err(Failure::new(Code::BadUsage, what.replace("MAX", &max.to_string()))),
    };
    most(flags.after.len(), JOB_AFTER_MAX, "a job may depend on at most MAX jobs")?;
    most(tags(flags).len(), JOB_TAGS_MAX, "a job may have at most MAX tags")?;
    most(labels(flags).len(), JOB_LABELS_MAX, "a job may require at most MAX labels")?;
    let labels = labels(flags);
    match labels.iter().zip(labels.iter().skip(1)).find(|((key, _), (next, _))| key == next) {
        None => Ok(()),
        Some(((key, one), (_, other))) => {
            Err(Failure::new(Code::BadUsage, format!("conflicting values for label {key}: {one} and {other}"))
                .why("a worker has one value per label")
                .fix("use one of them"))
        }
    }
}

/// In order of key, each pair once.
fn labels(flags: &Flags) -> Vec<(String, String)> {
    let pool = flags.pool.iter().map(|pool| ("pool".to_owned(), pool.clone()));
    let mut labels: Vec<_> = flags.label.iter().cloned().chain(pool).collect();
    labels.sort();
    labels.dedup();
    labels
}

/// In the order in which they were typed, each once.
fn tags(flags: &Flags) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in &flags.tag {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    tags
}

fn encoded(work: &Work) -> Result<Bytes, Failure> {
    work::encode(work).map_err(|error| {
        Failure::new(Code::BadJob, "the command is too long")
            .why(error.to_string())
            .fix("put long data into a file and pass the file name")
    })
}

/// A rule of submissions that no flag knows of by itself.
fn broken(rule: &SpecError) -> Failure {
    Failure::new(Code::BadJob, "invalid job").why(rule.to_string()).fix("correct it and submit again")
}

/// Whether every placeholder stands for something, and every item gets to its task.
fn check_places(work: &Work, spec: &JobSpec) -> Result<(), Failure> {
    let shape = match spec.items.is_empty() {
        true => None,
        false => items::check(&spec.items).ok(),
    };
    placeholders::check(work, shape).map_err(|error| {
        let what = match &error {
            FillError::ShellLine => "--shell takes a single command line".to_owned(),
            FillError::Columns => "invalid columns".to_owned(),
            FillError::TooMany | FillError::TooLong => "the command is too long".to_owned(),
            FillError::UnknownColumn { name, .. } => format!("unknown column {name}"),
            _ => "invalid placeholder".to_owned(),
        };
        Failure::new(Code::BadJob, what).why(error.to_string()).fix(error.hint())
    })?;
    if shape.is_some() && !placeholders::has_places(work) {
        let fix = match work.columns.first() {
            Some(column) => {
                format!("add {{{column}}} to the command, or use --array if only the number of tasks matters")
            }
            None => "add {} to the command, or use --array if only the number of tasks matters".to_owned(),
        };
        return Err(Failure::new(Code::BadJob, "the command has no placeholder")
            .why("every task would run the same command")
            .fix(fix));
    }
    Ok(())
}

/// The text so written that it comes out as it is.
fn literal(text: &str, columns: &[String]) -> Result<String, Failure> {
    let fields = vec!["x"; columns.len().max(1)];
    let shape = Shape { count: 1, fields: fields.len(), longest: 1 };
    let comes_out = |written: &str| {
        let work = Work { cwd: written.to_owned(), columns: columns.to_vec(), ..Work::default() };
        placeholders::fill(&work, PlaceholderValues::item(1, &fields)).cwd == text
            && placeholders::check(&work, Some(shape)).is_ok()
    };
    let doubled = text.replace('{', "{{").replace('}', "}}");
    [text.to_owned(), doubled].into_iter().find(|written| comes_out(written)).ok_or_else(|| {
        Failure::new(Code::BadUsage, format!("{text} contains braces that look like a placeholder"))
            .why("text in braces is replaced by a part of the task's item")
            .fix("use a name without braces, or another directory with --cwd")
    })
}

fn no_line() -> Failure {
    Failure::new(Code::BadUsage, "--shell cannot be used with a script")
        .why("the first line of a script selects its interpreter; --shell applies to a command after --")
        .fix("omit --shell")
}

fn two_places() -> Failure {
    Failure::new(Code::BadUsage, "--cwd cannot be used with --upload")
        .why("a task with uploaded files runs in its own directory, which contains them")
        .fix("omit --cwd, or change the directory in the command")
}

/// As text from the root on, without what means nothing in it.
fn plain(path: &str) -> String {
    let plain: PathBuf = Path::new(path).components().collect();
    plain.into_os_string().into_string().unwrap_or_else(|_| path.to_owned())
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let plain: PathBuf = path.components().collect();
    plain.into_os_string().into_string().map_err(|path| {
        Failure::new(Code::BadUsage, format!("the name of {} is not valid UTF-8", path.display()))
            .why("a job can carry only UTF-8 text")
            .fix("use another directory with --cwd")
    })
}

/// The program's file name, as much of it as a name may have.
fn default_name(program: &str, is_line: bool) -> String {
    let words = if is_line { shell::split(program).unwrap_or_default() } else { Vec::new() };
    let program = words.first().map_or(program, String::as_str);
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let end = name.floor_char_boundary(JOB_NAME_BYTES_MAX);
    let name = name.get(..end).unwrap_or_default();
    if name.is_empty() { "job".to_owned() } else { name.to_owned() }
}
