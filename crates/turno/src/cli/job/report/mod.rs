//! `turno job report`: one page that tells a whole job, to look at and to send to others.

mod charts;
mod figures;
mod html;
mod lanes;
mod page;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::job::JobView;
use turno_proto::model::limits::PAGE_MAX;
use turno_proto::model::{Code, Moment};

use self::figures::{Figures, TaskReader};
use self::page::PageContent;
use super::select::JobSelector;
use super::{JobClient, named};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::global::OutputArg;
use crate::cli::help;
use crate::cli::schema::report::ReportDocument;

/// Write an HTML report about a job
///
/// The report is one self-contained file: counts, failures, which slot ran which task when, durations, ends over time,
/// and each worker. A job that has not ended can be reported too.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job report 7 -o report.html", "turno job report last -o - > report.html", "turno job report 7 --file report.html --json"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct ReportArgs {
    /// Job: 7 or last
    job: JobSelector,

    /// Output file, - for stdout; or an output format, with --file for the file
    // The same id as the flag of every command, which this one stands for.
    #[arg(short, long, id = "output", value_name = "FILE", required_unless_present = "file", value_parser = OutputArg::of_any)]
    output: Option<OutputArg>,

    /// Output file; - for stdout
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl ReportArgs {
    fn file(&self) -> Result<&Path, Failure> {
        match (&self.file, &self.output) {
            (Some(file), _) | (None, Some(OutputArg::File(file))) => Ok(file),
            _ => Err(Failure::new(Code::BadUsage, "no output file given")
                .why("-o with a format name sets the format of standard output")
                .fix("add --file FILE")),
        }
    }
}

pub(super) async fn run(args: &ReportArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let file = args.file()?;
    let asked = JobClient::connect(invocation).await?;
    let view = asked.find(args.job).await?;
    let now = Moment::from_unix_ms(u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default());
    let figures = asked.figures(&view, now.unix_ms()).await?;
    let told = PageContent { job: &view, figures: &figures, written_at: now };
    let page = page::page(&told);
    if file == Path::new("-") {
        invocation.output.raw(page.as_bytes())?;
        return Ok(0);
    }
    fs::write(file, &page).map_err(|error| {
        Failure::new(Code::Io, format!("cannot write {}", file.display()))
            .why(error.to_string())
            .fix("choose a writable file")
    })?;
    let name = file.display().to_string();
    let document = ReportDocument {
        job: view.id.to_string(),
        file: name.clone(),
        bytes: page.len() as u64,
        tasks: figures.counts.all(),
    };
    invocation.output.one(&document, &name, || format!("{name}: job {}, {} tasks\n", document.job, document.tasks))?;
    Ok(0)
}

impl JobClient<'_> {
    /// Reads all tasks of a job.
    async fn figures(&self, view: &JobView, now: u64) -> Result<Figures, Failure> {
        let mut reader = TaskReader::new(view, now);
        let mut after = None;
        loop {
            let call = AdminCall::JobTasks { job: view.id, state: None, after, limit: PAGE_MAX };
            let (tasks, next) = match self.admin(call).await.map_err(|failure| named(failure, view.id))? {
                AdminAnswer::Tasks { tasks, next } => (tasks, next),
                other => return Err(connect::unexpected(&other)),
            };
            tasks.iter().for_each(|task| reader.add(task));
            // A page that does not go on would never end.
            match next {
                Some(next) if Some(next) > after => after = Some(next),
                _ => return Ok(reader.finish()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
