//! Flags that every command takes, before or after its name.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{EnumValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use turno_proto::model::units;

use super::paint::ColorWhen;
use super::progress::ProgressWhen;
use super::time::TimeStyle;

/// How long one round trip may take if nobody says otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// The format of stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    #[default]
    Text,
    /// All columns for people
    Wide,
    /// One JSON document
    Json,
    /// One JSON document per line
    Jsonl,
    /// Names or ids only, one per line
    Name,
}

impl Format {
    pub(crate) const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Jsonl)
    }
}

/// The argument of `-o`: the format of stdout or, where a command writes one, a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputArg {
    /// A format.
    Format(Format),
    /// A file.
    File(PathBuf),
}

impl OutputArg {
    /// For a command that writes a file: whatever is no format is one.
    pub(crate) fn of_any(text: &str) -> Result<Self, String> {
        Ok(Format::from_str(text, false).map_or_else(|_| Self::File(text.into()), Self::Format))
    }
}

/// The flags of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Brokers to try in order: turno://HOST:PORT or unix:PATH [env: TURNO_URL]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "URL",
        value_delimiter = ','
    )]
    pub(crate) url: Vec<String>,

    /// Configuration file; must exist
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "FILE",
        env = "TURNO_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,

    /// Output format
    #[arg(
        short,
        long,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "FORMAT",
        env = "TURNO_OUTPUT",
        hide_env_values = true
    )]
    #[arg(value_parser = EnumValueParser::<Format>::new().map(OutputArg::Format))]
    pub(crate) output: Option<OutputArg>,

    /// Same as --output json
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) json: bool,

    /// Columns to show, in order, by heading or JSON key
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "A,B,C",
        value_delimiter = ','
    )]
    pub(crate) columns: Vec<String>,

    /// Time format
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "STYLE",
        default_value = "relative"
    )]
    pub(crate) time: TimeStyle,

    /// Timeout of a round trip; deadline of a request [default: 5s]
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true, value_name = "DURATION", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Progress display on stderr
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true, value_name = "WHEN", num_args = 0..=1, default_value = "auto", default_missing_value = "auto")]
    pub(crate) progress: ProgressWhen,

    /// When to use colour
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        hide_long_help = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub(crate) color: ColorWhen,

    /// Answer yes to all questions
    #[arg(short, long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) yes: bool,

    /// Fail instead of asking; implied when stdin is not a terminal
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) no_input: bool,

    /// Print no hints and no progress
    #[arg(short, long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) quiet: bool,

    /// Log to stderr; repeat for more [env: TURNO_LOG]
    #[arg(short, long, global = true, hide_short_help = true, hide_long_help = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Global {
    pub(crate) fn format(&self) -> Format {
        match self.output {
            _ if self.json => Format::Json,
            Some(OutputArg::Format(format)) => format,
            Some(OutputArg::File(_)) | None => Format::default(),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }
}
