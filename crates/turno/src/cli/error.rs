//! Failures of commands: one line each for error, cause and fix, a stable code and its exit status.

mod system;

use std::io;

use turno_broker::config::Problem;
use turno_client::{AddressError, ErrorKind};
use turno_proto::model::Code;

pub(crate) use self::system::remedy;
use super::paint::Paint;
use super::schema::error::{ErrorBody, ErrorDocument};
use super::shown::{Page, escaped};

/// A command that did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    code: Code,
    what: String,
    why: String,
    fix: String,
    exit: u8,
    /// Further text, where that is more than a line.
    detail: String,
    /// Nobody is there to read, or all is said: end silently.
    silent: bool,
    /// It is told as a hint.
    hinted: bool,
}

impl Failure {
    /// With that code; `what` says what happened here, the rest comes from the table of codes.
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        let text = code.text();
        let what = what.into();
        let what = if what.is_empty() { text.what.to_owned() } else { what };
        Self {
            code,
            what,
            why: text.why.to_owned(),
            fix: text.fix.to_owned(),
            exit: code.exit(),
            detail: String::new(),
            silent: false,
            hinted: false,
        }
    }

    /// With only what the table says.
    pub(crate) fn of(code: Code) -> Self {
        Self::new(code, "")
    }

    /// For a reader of stdout that went away: the shell's `head` is no error.
    pub(crate) fn broken_pipe() -> Self {
        Self { exit: 0, silent: true, ..Self::of(Code::Io) }
    }

    /// For somebody who was asked and said no: nothing was done, and that is what was wanted.
    pub(crate) fn declined() -> Self {
        Self { exit: 0, silent: true, ..Self::of(Code::NotConfirmed) }
    }

    /// For people it is a hint and no error: they ended the command themselves.
    #[must_use]
    pub(crate) fn hinted(mut self) -> Self {
        self.hinted = true;
        self
    }

    /// A better reason than the table's.
    #[must_use]
    pub(crate) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// A better remedy than the table's.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = fix.into();
        self
    }

    /// Further text, where that is more than a line.
    #[must_use]
    pub(crate) fn detail(mut self, detail: &str) -> Self {
        detail.trim_end().clone_into(&mut self.detail);
        self
    }

    /// Another exit status than the code's.
    #[must_use]
    pub(crate) fn exit_with(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    pub(crate) fn exit(&self) -> u8 {
        self.exit
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// For people, on stderr.
    pub(crate) fn render(&self, paint: Paint) -> String {
        if self.hinted {
            return format!("{}: {}\n{} {}\n", self.what, self.why, paint.dim("hint:"), self.fix);
        }
        let name = self.code.name();
        let mut detail = Page::new();
        detail.block("| ", &self.detail);
        format!(
            "{} {}\n{} {}\n{} {}\n{} {name} (turno explain {name})\n{detail}",
            paint.bad("error:"),
            escaped(&self.what),
            paint.dim("why:"),
            escaped(&self.why),
            paint.good("fix:"),
            escaped(&self.fix),
            paint.dim("code:"),
        )
    }

    /// For programs.
    pub(crate) fn body(&self) -> ErrorBody {
        ErrorBody {
            code: self.code.name().to_owned(),
            message: self.what.clone(),
            why: self.why.clone(),
            hint: self.fix.clone(),
            docs: format!("turno explain {}", self.code.name()),
            detail: (!self.detail.is_empty()).then(|| self.detail.clone()),
        }
    }

    /// For programs, on stdout.
    pub(crate) fn document(&self) -> ErrorDocument {
        ErrorDocument { error: self.body() }
    }
}

/// From writing to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::broken_pipe();
        }
        Self::system("cannot write to standard output", &error)
    }
}

/// From reading the configuration: the first problem, and how many more there are.
impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
        let what = match problems.as_slice() {
            [] => String::new(),
            [one] => one.to_string(),
            [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
        };
        if let Some(Problem { unreadable: Some(error), .. }) = problems.first() {
            let fix = format!("{}; or use another file with --config", system::remedy_of(*error));
            let why = "this user may not read it, so its settings are unknown";
            return Self::new(Code::BadConfig, what).why(why).fix(fix);
        }
        let typed = !problems.is_empty() && problems.iter().all(|problem| problem.typed);
        Self::new(if typed { Code::BadUsage } else { Code::BadConfig }, what)
    }
}

/// From the client library.
impl From<turno_client::Error> for Failure {
    fn from(error: turno_client::Error) -> Self {
        let code = error.code();
        match error.kind() {
            ErrorKind::CannotConnect => system::unreachable(error.attempts()),
            _ if error.detail().trim().lines().count() > 1 => Self::new(code, error.to_string()).detail(error.detail()),
            _ => Self::new(code, error.to_string()),
        }
    }
}

impl From<AddressError> for Failure {
    fn from(error: AddressError) -> Self {
        turno_client::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_renders_four_lines_and_keeps_its_exit_status() {
        for code in Code::ALL {
            let failure = Failure::of(*code);
            let text = failure.render(Paint::plain());
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 4, "{code}");
            for (line, start) in lines.iter().zip(["error: ", "why: ", "fix: ", "code: "]) {
                assert!(line.starts_with(start) && line.len() > start.len(), "{line}");
            }
            assert_eq!(lines[3], format!("code: {code} (turno explain {code})"));
            assert_eq!(failure.exit(), code.exit());
            assert!(failure.exit() > 0);
        }
    }

    #[test]
    fn what_is_said_here_beats_the_table() {
        let failure = Failure::new(Code::NotFound, "no queue is called q").why("a").fix("b").exit_with(9);
        let text = failure.render(Paint::plain());
        assert_eq!(text, "error: no queue is called q\nwhy: a\nfix: b\ncode: not_found (turno explain not_found)\n");
        assert_eq!(failure.exit(), 9);
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(failure.is_silent());
        assert_eq!(failure.exit(), 0);
        let failure = Failure::from(io::Error::other("disk full"));
        assert!(!failure.is_silent());
        assert_eq!((failure.code(), failure.exit()), (Code::Io, 1));
    }

    #[test]
    fn several_problems_are_counted() {
        let problem = |text: &str| Problem {
            place: Some("turno.toml:3".to_owned()),
            text: text.to_owned(),
            typed: text == "typed",
            unreadable: None,
        };
        let one = Failure::from(vec![problem("bad")]);
        assert_eq!((one.what(), one.exit()), ("turno.toml:3: bad", 78));
        let three = Failure::from(vec![problem("bad"), problem("worse"), problem("worst")]);
        assert_eq!(three.what(), "turno.toml:3: bad (and 2 more)");
        let denied = Problem { unreadable: Some(io::ErrorKind::PermissionDenied), ..problem("cannot be read") };
        let denied = Failure::from(vec![denied]);
        assert_eq!((denied.code(), denied.exit()), (Code::BadConfig, 78));
        assert!(denied.render(Paint::plain()).contains("permission"), "{denied:?}");
        assert_eq!(Failure::from(vec![problem("typed")]).exit(), 2);
        assert_eq!(Failure::from(vec![problem("typed"), problem("bad")]).exit(), 78);
    }

    #[test]
    fn what_a_worker_wrote_stands_below_in_full() {
        let detail = "exit 1: one\ntwo\n".to_owned();
        let failure = Failure::from(turno_client::Error::from_code(Code::Failed, detail));
        let text = failure.render(Paint::plain());
        assert!(text.starts_with("error: the worker reported a failure: exit 1: one\nwhy: "), "{text}");
        assert!(text.ends_with("(turno explain failed)\n| exit 1: one\n| two\n"), "{text}");
        assert_eq!(failure.body().detail.as_deref(), Some("exit 1: one\ntwo"));
    }

    #[test]
    fn nobody_answering_names_every_address() {
        let address = |place: &str| turno_client::Address::Tcp(place.to_owned());
        let tried = ["a:1", "b:2"].map(|place| turno_client::ConnectAttempt::new(address(place), "refused"));
        let failure = Failure::from(turno_client::Error::cannot_connect(tried));
        assert_eq!(failure.exit(), 5);
        assert!(failure.what().contains("turno://a:1, turno://b:2"), "{}", failure.what());
    }
}
