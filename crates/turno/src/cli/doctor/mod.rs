//! `turno doctor`: a look at a broker's data directory. It needs no broker, and changes nothing.

mod archive;
mod dead;
mod directory;
mod live;
mod ring;
mod store;

use std::path::{Path, PathBuf};

use clap::Args;
use turno_broker::config::{Config, Flag, RawValue};
use turno_broker::storage::Dead;
use turno_proto::model::Code;

use self::live::Live;
use super::Invocation;
use super::error::Failure;
use super::exposure::{self, ExposedPath};
use super::help;
use super::schema::doctor::{DoctorDocument, Finding, Level};
use super::shown::Page;

/// Check a data directory
///
/// Needs no broker and changes nothing. While a broker uses the directory, only the files that can be read safely are
/// checked, and the broker is asked about its memory, its dead letters and its ring. Warnings do not fail the command.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno doctor", "turno doctor --data /var/lib/turno", "turno doctor --json"],
    &[1, 78],
))]
pub(crate) struct DoctorArgs {
    /// Directory to check [default: the one `turno serve` would use]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: &DoctorArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let raw = |path: &PathBuf| RawValue::Text(path.display().to_string());
    let flag = args.data.as_ref().map(|path| Flag { flag: "--data", key: "data", raw: raw(path) });
    let config = invocation.config(flag.as_slice())?;
    let data = config.typed().data;
    let dead_max = config.typed().broker.limits.dead_max as u64;
    let live = live::seen(&data, dead_max, invocation);
    let document = examine(&data, live, dead_max, |report| exposure(&config, report));
    invocation.output.one(&document, &document.data, || text(&document.findings))?;
    Ok(u8::from(!document.healthy))
}

/// `live`: what the broker that runs there tells. `dead_max`: dead letters of a queue beyond which to warn. `exposure`: who
/// else gets at it.
fn examine(data: &Path, live: Option<Live>, dead_max: u64, exposure: impl FnOnce(&mut Report)) -> DoctorDocument {
    let mut report = Report::default();
    if directory::look(data, &mut report) {
        exposure(&mut report);
        archive::look(data, &mut report);
        store::look(data, dead_max, &mut report);
    }
    if let Some(Live { broker, with_many_dead, ring }) = live {
        dead::look_at_memory(&broker, &mut report);
        let many =
            with_many_dead.iter().map(|queue| (&*queue.name, Dead { count: queue.dead, bytes: queue.dead_bytes }));
        dead::look(broker.dead, many, dead_max, &mut report);
        if let Some(ring) = ring {
            ring::look(&ring, &mut report);
        }
    }
    let Report { findings, store, damage } = report;
    let healthy = findings.iter().all(|finding| finding.level != Level::Error);
    DoctorDocument { data: data.display().to_string(), healthy, findings, store, damage }
}

/// Checks who may use a broker with this configuration, and which files other users can read.
fn exposure(config: &Config, report: &mut Report) {
    let settings = config.typed();
    let open = exposure::open_to_all(&settings.broker.zmq);
    let access = exposure::access(settings.broker.listen.iter().chain(&settings.broker.foreman).chain(&open));
    // The flags that a broker was started with are not known here.
    report.ok("access", format!("as configured: {access}"));
    for ExposedPath { path, what, mode, fix } in exposure::loose(config) {
        let what = format!("{}, {what}, has mode {mode:o}: other users of this machine can access it", path.display());
        report.warn("exposure", what, &fix);
    }
}

/// The findings so far.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    store: Option<super::schema::doctor::StoreBody>,
    damage: Option<super::schema::doctor::DamageBody>,
}

impl Report {
    fn ok(&mut self, check: &'static str, what: String) -> &mut Finding {
        self.add(check, Level::Ok, what)
    }

    fn warn(&mut self, check: &'static str, what: String, advice: &str) -> &mut Finding {
        self.add(check, Level::Warn, what).advise(advice)
    }

    fn error(&mut self, check: &'static str, code: Code, what: String) -> &mut Finding {
        let finding = self.add(check, Level::Error, what);
        finding.code = Some(code.name());
        finding
    }

    fn add(&mut self, check: &'static str, level: Level, what: String) -> &mut Finding {
        let finding = Finding { check, level, what, advice: None, code: None, file: None, offset: None };
        self.findings.push_mut(finding)
    }
}

impl Finding {
    fn advise(&mut self, advice: impl Into<String>) -> &mut Self {
        self.advice = Some(advice.into());
        self
    }

    fn at(&mut self, file: &str, offset: u64) -> &mut Self {
        (self.file, self.offset) = (Some(file.to_owned()), Some(offset));
        self
    }
}

/// A line for each finding, and one below it that says what to do.
fn text(findings: &[Finding]) -> Page {
    let mut page = Page::new();
    for Finding { level, check, what, advice, .. } in findings {
        page.line(&format!("{:<7}{check:<11}{what}", level.word()));
        if let Some(advice) = advice {
            page.line(&format!("{:<18}{advice}", ""));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_stands_below_what_it_is_for() {
        let mut report = Report::default();
        report.ok("lock", "no broker is running here".to_owned());
        report.error("format", Code::DataNewer, "it is newer".to_owned()).at("x", 7).advise("use the newer version");
        assert_eq!(
            text(&report.findings),
            "ok     lock       no broker is running here\n\
             error  format     it is newer\n                  use the newer version\n"
        );
        assert_eq!((report.findings[1].code, report.findings[1].offset), (Some("data_newer"), Some(7)));
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_and_nothing_else_is_looked_at() {
        let place = tempfile::TempDir::new().unwrap();
        let document = examine(&place.path().join("missing"), None, 10, |_| {});
        assert!(!document.healthy && document.findings.len() == 1, "{document:?}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing was made");
    }

    #[test]
    fn a_directory_without_a_store_is_well() {
        let place = tempfile::TempDir::new().unwrap();
        let document = examine(place.path(), None, 10, |_| {});
        let checks: Vec<&str> = document.findings.iter().map(|finding| finding.check).collect();
        assert_eq!((document.healthy, checks), (true, vec!["directory", "lock", "disk", "store"]));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing was made");
    }
}
