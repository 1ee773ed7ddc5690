//! Log lines: to stderr, never in the way of what is logged about.
//!
//! Lines go through a bounded buffer to a thread that writes them. When the buffer is full they are dropped and
//! counted, and the count is told at the end.

use std::fmt;
use std::io::{self, IsTerminal as _};

use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format as LineFormat, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use turno_proto::model::Code;

use super::error::Failure;
use super::global::Global;
use super::output::Output;
use super::paint::Paint;
use crate::config::{LogFormat, Settings};

/// Lines that wait to be written. More: dropped, counted.
const LINES_MAX: usize = 8_192;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// For people; in colour on a terminal.
    Text { color: bool },
    /// For programs.
    Json,
    /// For the journal: it knows the time itself, and reads the level from a prefix.
    Journal,
}

/// The log of this process, for as long as it lives.
pub(crate) struct Logging {
    style: Style,
    dropped: Option<ErrorCounter>,
    guard: Option<WorkerGuard>,
}

impl Logging {
    /// What a broker logs: its level and format are part of the configuration, `-v` and TURNO_LOG beat the level.
    pub(crate) fn for_broker(settings: &Settings, global: &Global) -> Result<Self, Failure> {
        let level = match global.verbose {
            0 => from_environment().unwrap_or_else(|| settings.log_level.clone()),
            1 => "debug".to_owned(),
            _ => "trace".to_owned(),
        };
        Self::start(&level, style(settings.log_format, global))
    }

    /// What another command logs: nothing, unless asked, or warnings if it goes on for long.
    pub(crate) fn for_command(global: &Global, goes_on: bool) -> Result<Self, Failure> {
        let style = style(LogFormat::Auto, global);
        match (global.verbose, from_environment()) {
            (0, None) if goes_on => Self::start("warn", style),
            (0, None) => Ok(Self { style, dropped: None, guard: None }),
            (0, Some(level)) => Self::start(&level, style),
            (1, _) => Self::start("info", style),
            (2, _) => Self::start("debug", style),
            _ => Self::start("trace", style),
        }
    }

    fn start(level: &str, style: Style) -> Result<Self, Failure> {
        let filter = EnvFilter::try_new(level).map_err(|error| {
            Failure::new(Code::BadConfig, format!("{level:?} does not say which log lines are wanted"))
                .why(error.to_string())
                .fix("TURNO_LOG takes a level (error, warn, info, debug, trace) or target=level, parted by commas")
        })?;
        let (writer, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(LINES_MAX)
            .lossy(true)
            .thread_name("turno-log")
            .finish(io::stderr());
        let dropped = writer.error_counter();
        // Another log may have been there first, as in tests.
        let ours = install(filter, writer, style);
        Ok(Self { style, dropped: ours.then_some(dropped), guard: ours.then_some(guard) })
    }

    /// Whether other text on stderr would be in the way of a program that reads it.
    pub(crate) fn is_for_programs(&self) -> bool {
        matches!(self.style, Style::Json | Style::Journal)
    }

    /// Writes what still waits, and tells how much was lost.
    pub(crate) fn finish(mut self, output: &Output) {
        drop(self.guard.take());
        let dropped = self.dropped.as_ref().map_or(0, ErrorCounter::dropped_lines);
        if dropped > 0 {
            output.warn(&format!("{dropped} log lines were dropped because stderr was too slow"));
        }
    }
}

fn from_environment() -> Option<String> {
    std::env::var("TURNO_LOG").ok().filter(|text| !text.is_empty())
}

fn style(format: LogFormat, global: &Global) -> Style {
    let terminal = io::stderr().is_terminal();
    match format {
        LogFormat::Json => Style::Json,
        LogFormat::Auto if std::env::var_os("JOURNAL_STREAM").is_some() && !terminal => Style::Journal,
        LogFormat::Auto | LogFormat::Text => Style::Text { color: Paint::for_stderr(global.color).is_on() },
    }
}

fn install(filter: EnvFilter, writer: NonBlocking, style: Style) -> bool {
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match style {
        Style::Json => base.json().flatten_event(true).try_init().is_ok(),
        Style::Journal => base.with_ansi(false).event_format(Journal::default()).try_init().is_ok(),
        Style::Text { color } => base.with_ansi(color).try_init().is_ok(),
    }
}

/// Lines as the journal likes them.
struct Journal {
    rest: LineFormat<Full, ()>,
}

impl Default for Journal {
    fn default() -> Self {
        Self { rest: LineFormat::default().without_time().with_level(false) }
    }
}

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        self.rest.format_event(ctx, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_journal_gets_priorities_and_no_time() {
        let paper = Paper::default();
        let copy = paper.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || copy.clone())
            .with_ansi(false)
            .event_format(Journal::default())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(port = 7460, "listening");
            tracing::error!("gone");
        });
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("<6>") && lines[0].ends_with("listening port=7460"), "{text}");
        assert!(lines[1].starts_with("<3>") && lines[1].ends_with("gone"), "{text}");
    }
}
