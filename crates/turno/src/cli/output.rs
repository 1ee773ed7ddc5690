//! Output of commands: data to stdout, everything else to stderr.

use std::cell::Cell;
use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

use super::error::Failure;
use super::global::{Format, Global};
use super::paint::Paint;
use super::schema::{self, Document};
use super::shown::{self, Page, escaped};
use super::table::{self, Row};
use super::time::Clock;
use super::width;

/// Where a command writes.
pub(crate) struct Output {
    format: Format,
    columns: Vec<String>,
    quiet: bool,
    paint: Paint,
    clock: Clock,
    /// Whether a document is out already: `json` allows one.
    told: Cell<bool>,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            format: global.format(),
            columns: global.columns.clone(),
            quiet: global.quiet,
            paint: Paint::for_stderr(global.color),
            clock: Clock::new(global.time),
            told: Cell::new(false),
        }
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) const fn quiet(&self) -> bool {
        self.quiet
    }

    /// Colour for what goes to stderr.
    pub(crate) const fn paint(&self) -> Paint {
        self.paint
    }

    /// Bytes as they are: only what the user asked to have byte for byte, and scripts and pages that this program made.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        write(bytes)
    }

    /// Text for people, each line of it escaped.
    pub(crate) fn text(&self, page: impl Into<Page>) -> Result<(), Failure> {
        self.raw(page.into().as_bytes())
    }

    /// One document: spread out for a person at a terminal, else one line.
    pub(crate) fn document<D: Document>(&self, document: &D) -> Result<(), Failure> {
        let spread = self.format == Format::Json && io::stdout().is_terminal();
        let envelope = schema::envelope(document);
        let text = match spread {
            true => shown::json(serde_json::to_string_pretty(&envelope).unwrap_or_default()) + "\n",
            false => schema::line(&envelope),
        };
        self.told.set(true);
        self.raw(text.as_bytes())
    }

    /// One thing: a document for programs, `text` for people, its name for scripts.
    pub(crate) fn one<D: Document, P: Into<Page>>(
        &self,
        document: &D,
        name: &str,
        text: impl FnOnce() -> P,
    ) -> Result<(), Failure> {
        self.several(document, name.into(), text)
    }

    /// Several things in one document, with a line for each name.
    pub(crate) fn several<D: Document, P: Into<Page>>(
        &self,
        document: &D,
        names: Page,
        text: impl FnOnce() -> P,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Json | Format::Jsonl => self.document(document),
            Format::Name => self.text(names),
            Format::Text | Format::Wide => self.text(text()),
        }
    }

    /// Many things: `document` holds the same rows for `json`.
    pub(crate) fn rows<D: Document, R: Row + Document>(&self, document: &D, rows: &[R]) -> Result<(), Failure> {
        self.rows_with(document, rows, &[])
    }

    /// The same with other columns than usual, unless the user chose some.
    pub(crate) fn rows_with<D: Document, R: Row + Document>(
        &self,
        document: &D,
        rows: &[R],
        usual: &[&str],
    ) -> Result<(), Failure> {
        let usual: Vec<String> = usual.iter().map(|key| (*key).to_owned()).collect();
        let all = self.format == Format::Wide;
        let asked = if self.columns.is_empty() && !all { &usual } else { &self.columns };
        let columns = table::choose::<R>(asked, all)?;
        match self.format {
            Format::Json => self.document(document),
            Format::Jsonl => {
                self.told.set(true);
                let keys: Vec<&str> = columns.iter().map(|column| column.key).collect();
                self.raw(rows.iter().map(|row| self.row(row, &keys)).collect::<String>().as_bytes())
            }
            Format::Name => self.text(rows.iter().map(R::name).collect::<Page>()),
            Format::Text | Format::Wide => self.text(table::render(&columns, rows, &self.clock, self.room())),
        }
    }

    /// Columns that a table has room for: those of the terminal, unless the user asked for all of it.
    fn room(&self) -> Option<usize> {
        let is_chosen = self.format == Format::Wide || !self.columns.is_empty();
        (!is_chosen && io::stdout().is_terminal()).then(|| width::terminal(io::stdout()))
    }

    /// One row for programs; with `--columns` only those, in their order, behind the schema's name.
    fn row<R: Document>(&self, row: &R, keys: &[&str]) -> String {
        if self.columns.is_empty() {
            return schema::line(&schema::envelope(row));
        }
        chosen(row, keys)
    }

    /// The next useful command, unless nobody wants to hear of it.
    pub(crate) fn hint(&self, text: &str) {
        if !self.quiet {
            self.stderr_raw(format!("{} {}\n", self.paint.dim("hint:"), escaped(text)).as_bytes());
        }
    }

    /// Prints a note, unless `--quiet` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.stderr(text);
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        self.stderr_raw(format!("{} {}\n", self.paint.bad("warning:"), escaped(text)).as_bytes());
    }

    /// Why the command failed: on stdout for programs, else on stderr.
    pub(crate) fn failure(&self, failure: &Failure) {
        if failure.is_silent() {
            return;
        }
        let second = self.format == Format::Json && self.told.get();
        if self.format.is_json() && !second {
            let _ = self.document(&failure.document());
        } else {
            self.stderr_raw(failure.render(self.paint).as_bytes());
        }
    }

    /// A question at the end of whose line the answer is typed.
    pub(crate) fn prompt(&self, question: &str) {
        self.stderr_raw(format!("{} [y/N] ", escaped(question)).as_bytes());
    }

    /// Text for people on stderr, each line of it escaped. Nobody can be told that stderr is gone.
    pub(crate) fn stderr(&self, page: impl Into<Page>) {
        self.stderr_raw(page.into().as_bytes());
    }

    /// Bytes as they are on stderr: the output of tasks, and what is drawn in colours or over itself. Such drawings escape
    /// the texts in them.
    pub(crate) fn stderr_raw(&self, bytes: &[u8]) {
        let _ = io::stderr().lock().write_all(bytes);
    }
}

/// Writes bytes as they are, without an [`Output`].
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

fn chosen<R: Document>(row: &R, keys: &[&str]) -> String {
    let value = serde_json::to_value(row).unwrap_or_default();
    let pair = |key: &str, value: &Value| format!("{}:{value}", Value::from(key));
    let mut pairs = vec![pair("schema", &R::SCHEMA.into())];
    pairs.extend(keys.iter().map(|key| pair(key, value.get(key).unwrap_or(&Value::Null))));
    shown::json(format!("{{{}}}", pairs.join(","))) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::schema::meta::CodeRow;
    use turno_proto::model::Code;

    #[test]
    fn chosen_columns_keep_their_order_in_json_too() {
        let line = chosen(&CodeRow::from(Code::NotFound), &["exit", "code"]);
        assert_eq!(line, "{\"schema\":\"turno.code_row/1\",\"exit\":4,\"code\":\"not_found\"}\n");
    }
}
