//! Log lines on stderr, which never block the program.
//!
//! Lines go through a bounded buffer to a thread that writes them. When the buffer is full they are dropped and
//! counted, and the count is told at the end.

use std::fmt;
use std::io::{self, IsTerminal as _};

use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{self, Format as LineFormat, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use turno_broker::config::{AllSettings, LogFormat};
use turno_proto::model::Code;

use super::error::Failure;
use super::global::Global;
use super::output::Output;
use super::paint::Paint;
use super::shown::{self, escaped};

/// Lines that wait to be written. More: dropped, counted.
const LINES_MAX: usize = 8_192;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogLineStyle {
    /// For people; in colour on a terminal.
    Text { color: bool },
    /// For programs.
    Json,
    /// For the journal: it knows the time itself, and reads the level from a prefix.
    Journal,
}

/// The log of this process, for as long as it lives.
pub(crate) struct Logging {
    style: LogLineStyle,
    dropped: Option<ErrorCounter>,
    guard: Option<WorkerGuard>,
}

impl Logging {
    /// The log of a broker: level and format are part of the configuration; `-v` and TURNO_LOG override the level.
    pub(crate) fn for_broker(settings: &AllSettings, global: &Global) -> Result<Self, Failure> {
        let level = match global.verbose {
            0 => from_environment().unwrap_or_else(|| settings.log_level.clone()),
            1 => "debug".to_owned(),
            _ => "trace".to_owned(),
        };
        Self::start(&level, style(settings.log_format, global))
    }

    /// The log of other commands: nothing, unless asked, or warnings if it runs for long.
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

    fn start(level: &str, style: LogLineStyle) -> Result<Self, Failure> {
        let filter = EnvFilter::try_new(level).map_err(|error| {
            Failure::new(Code::BadConfig, format!("invalid log level {level:?}")).why(error.to_string()).fix(
                "TURNO_LOG takes a level (error, warn, info, debug, trace) or a comma-separated list of target=level",
            )
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
        matches!(self.style, LogLineStyle::Json | LogLineStyle::Journal)
    }

    /// Writes what still waits, and tells how much was lost.
    pub(crate) fn finish(mut self, output: &Output) {
        drop(self.guard.take());
        let dropped = self.dropped.as_ref().map_or(0, ErrorCounter::dropped_lines);
        if dropped > 0 {
            output.warn(&format!("dropped {dropped} log lines because stderr was too slow"));
        }
    }
}

fn from_environment() -> Option<String> {
    std::env::var("TURNO_LOG").ok().filter(|text| !text.is_empty())
}

fn style(format: LogFormat, global: &Global) -> LogLineStyle {
    let terminal = io::stderr().is_terminal();
    match format {
        LogFormat::Json => LogLineStyle::Json,
        LogFormat::Auto if std::env::var_os("JOURNAL_STREAM").is_some() && !terminal => LogLineStyle::Journal,
        LogFormat::Auto | LogFormat::Text => LogLineStyle::Text { color: Paint::for_stderr(global.color).is_on() },
    }
}

fn install(filter: EnvFilter, writer: NonBlocking, style: LogLineStyle) -> bool {
    let base = tracing_subscriber::fmt().with_env_filter(filter);
    match style {
        LogLineStyle::Json => {
            let json = base.json().flatten_event(true).with_writer(move || Visible(writer.clone()));
            json.try_init().is_ok()
        }
        LogLineStyle::Journal => {
            let text = base.with_writer(writer).with_ansi(false).fmt_fields(fields());
            text.event_format(Journal::default()).try_init().is_ok()
        }
        LogLineStyle::Text { color } => {
            base.with_writer(writer).with_ansi(color).fmt_fields(fields()).try_init().is_ok()
        }
    }
}

/// Message and fields of a line for people. Names, addresses and errors in them come from peers: whatever they hold, the
/// line is one line, and no terminal acts on it.
fn fields() -> impl for<'a> FormatFields<'a> + 'static {
    format::debug_fn(|writer, field, value| {
        let value = format!("{value:?}");
        match (field.name(), writer.has_ansi_escapes()) {
            ("message", _) => write!(writer, "{}", escaped(&value)),
            (name, false) => write!(writer, "{name}={}", escaped(&value)),
            (name, true) => write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{}", escaped(&value)),
        }
    })
    .delimited(" ")
}

/// Takes whole lines of JSON, and writes them with what a terminal would act on escaped.
struct Visible<W>(W);

impl<W: io::Write> io::Write for Visible<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(shown::json(String::from_utf8_lossy(line).into_owned()).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
    struct LogOutput(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LogOutput {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn the_journal_gets_priorities_and_no_time() {
        let paper = LogOutput::default();
        let copy = paper.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || copy.clone())
            .with_ansi(false)
            .fmt_fields(fields())
            .event_format(Journal::default())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(port = 7460, "listening");
            tracing::error!("gone");
        });
        let text = paper.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("<6>") && lines[0].ends_with("listening port=7460"), "{text}");
        assert!(lines[1].starts_with("<3>") && lines[1].ends_with("gone"), "{text}");
    }

    /// In a value, a message, an error and a Debug text: one line each, and only colours of our own.
    #[test]
    fn what_peers_chose_is_escaped_in_every_style() {
        let hostile = "\x1b]52;c;aGk=\x07\u{9b}2J\u{202e}\u{200b}\nforged";
        let log = |subscriber: Box<dyn Fn(LogOutput) -> tracing::Dispatch>| {
            let paper = LogOutput::default();
            tracing::dispatcher::with_default(&subscriber(paper.clone()), || {
                let error = io::Error::other(hostile);
                tracing::info!(name = hostile, shown = %hostile, debug = ?hostile, %error, "a peer says {hostile}");
            });
            paper.text()
        };
        let text = |color| {
            log(Box::new(move |paper| {
                let base = tracing_subscriber::fmt().with_writer(move || paper.clone());
                base.with_ansi(color).fmt_fields(fields()).finish().into()
            }))
        };
        let json = log(Box::new(|paper| {
            let base = tracing_subscriber::fmt().json().flatten_event(true);
            base.with_writer(move || Visible(paper.clone())).finish().into()
        }));
        let coloured = text(true);
        assert!(coloured.contains("\x1b[3mname"), "{coloured:?}");
        let ours = ["\x1b[0m", "\x1b[2m", "\x1b[3m", "\x1b[32m"];
        let coloured = ours.iter().fold(coloured, |text, sequence| text.replace(sequence, ""));
        for line in [text(false), coloured, json] {
            let line = line.strip_suffix('\n').unwrap();
            assert!(!line.contains(shown::is_hidden), "{line:?}");
            assert!(line.contains("52;c;aGk="), "{line:?}");
        }
    }
}
