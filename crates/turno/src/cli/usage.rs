//! Wrong usage, and requests for help.

use std::ffi::OsString;
use std::io::Write as _;

use clap::ValueEnum as _;
use clap::error::{ContextKind, ErrorKind};
use turno_proto::model::Code;

use super::error::Failure;
use super::paint::{ColorWhen, Paint};
use super::schema;
use super::words::one_line;

/// Tells the user; the answer is the exit status.
pub(crate) fn tell(error: &clap::Error, words: &[OsString]) -> u8 {
    let color = color(words);
    if !error.use_stderr() {
        // Help and version are data; a reader that went away is no error.
        let _ = match color {
            ColorWhen::Auto => error.print(),
            ColorWhen::Always => write!(std::io::stdout().lock(), "{}", error.render().ansi()),
            ColorWhen::Never => write!(std::io::stdout().lock(), "{}", error.render()),
        };
        return 0;
    }
    let failure = failure(error);
    if wants_json(words) {
        let line = schema::line(&schema::envelope(&failure.document()));
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    } else if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        let text = failure.render(Paint::for_stderr(color));
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
    failure.exit()
}

/// clap's first paragraph says what is wrong; those that follow hold tips and the usage.
pub(crate) fn failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(one_line);
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a command is missing".to_owned(),
        _ => paragraphs.next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    };
    let tip = paragraphs.find_map(|text| text.strip_prefix("tip: ").map(ToOwned::to_owned));
    let usage = error.get(ContextKind::Usage).map(|usage| one_line(&usage.to_string()));
    let failure = Failure::new(Code::BadUsage, what);
    match (tip, usage) {
        (None, None) => failure,
        (tip, usage) => failure.fix(tip.into_iter().chain(usage).collect::<Vec<_>>().join(". ")),
    }
}

/// The colour that was asked for, as far as words that make no sense can tell.
fn color(words: &[OsString]) -> ColorWhen {
    let words = flags(words);
    let asked = words.iter().zip(words.iter().skip(1).chain([&""])).filter_map(|(word, next)| match *word {
        "--color" => Some(*next),
        _ => word.strip_prefix("--color="),
    });
    asked.last().and_then(|when| ColorWhen::from_str(when, false).ok()).unwrap_or_default()
}

/// The words that may be flags. One that is no text may be what makes no sense; those behind it count all the same.
fn flags(words: &[OsString]) -> Vec<&str> {
    words.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).take_while(|word| *word != "--").collect()
}

/// Whether JSON was asked for, as far as words that make no sense can tell.
fn wants_json(words: &[OsString]) -> bool {
    let words = flags(words);
    let is_json = |format: &str| matches!(format, "json" | "jsonl");
    let mut wanted = std::env::var("TURNO_OUTPUT").is_ok_and(|format| is_json(&format));
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1).copied().unwrap_or_default();
        match *word {
            "--json" => return true,
            "-o" | "--output" => wanted = is_json(next),
            _ => {
                if let Some(format) = word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o")) {
                    wanted = is_json(format.trim_start_matches('='));
                }
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tree;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn json_is_recognised_in_any_order() {
        let table = [
            ("turno --json nonsense", true),
            ("turno nonsense -o json", true),
            ("turno nonsense -ojsonl", true),
            ("turno nonsense --output=json", true),
            ("turno nonsense -o text", false),
            ("turno work q -- program --json", false),
            ("turno", false),
        ];
        for (line, expected) in table {
            assert_eq!(wants_json(&words(line)), expected, "{line}");
        }
    }

    #[test]
    fn wrong_usage_ends_with_2_and_says_what_is_wrong() {
        let table = [
            ("turno nonsense", "unrecognized subcommand 'nonsense'"),
            ("turno queue ls --nonsense", "unexpected argument '--nonsense' found"),
            ("turno --timeout 5 status", "invalid duration"),
            ("turno", "a command is missing"),
        ];
        for (line, expected) in table {
            let failure = failure(&tree::parse(&words(line)).unwrap_err());
            assert_eq!((failure.exit(), failure.code()), (2, Code::BadUsage), "{line}");
            assert!(failure.what().contains(expected), "{line}: {}", failure.what());
            assert_eq!(failure.render(Paint::plain()).lines().count(), 4, "{line}");
        }
        let near = failure(&tree::parse(&words("turno serv")).unwrap_err());
        assert!(near.render(Paint::plain()).contains("fix: a similar subcommand exists: 'serve'"), "{near:?}");
    }
}
