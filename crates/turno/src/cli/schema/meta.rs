//! What the program tells about itself.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::Code;

use crate::cli::table::{Column, Row};

/// A code and what it means.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CodeRow {
    /// The stable word.
    pub(crate) code: String,
    /// Its number on the wire.
    pub(crate) number: u32,
    /// The exit status of a command that ends with it.
    pub(crate) exit: u8,
    /// What happened.
    pub(crate) what: String,
    /// Why it happens.
    pub(crate) why: String,
    /// What to do about it.
    pub(crate) fix: String,
}

impl From<Code> for CodeRow {
    fn from(code: Code) -> Self {
        let text = code.text();
        Self {
            code: code.name().to_owned(),
            number: code.number(),
            exit: code.exit(),
            what: text.what.to_owned(),
            why: text.why.to_owned(),
            fix: text.fix.to_owned(),
        }
    }
}

impl Row for CodeRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("code", |row, _| row.code.clone()),
        Column::new("exit", |row, _| row.exit.to_string()),
        Column::wide("number", |row, _| row.number.to_string()),
        Column::new("what", |row, _| row.what.clone()),
        Column::wide("why", |row, _| row.why.clone()),
        Column::wide("fix", |row, _| row.fix.clone()),
    ];

    fn name(&self) -> String {
        self.code.clone()
    }
}

/// One code.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CodeDocument {
    pub(crate) code: CodeRow,
}

/// Every code.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CodeListDocument<'a> {
    pub(crate) codes: &'a [CodeRow],
}

/// Which program this is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VersionDocument {
    /// The program's version.
    pub(crate) version: String,
    /// The version of the native protocol it speaks.
    pub(crate) protocol: u16,
}

/// A text that is not ours to take apart: a completion script, a man page.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TextDocument {
    /// The name of the file it would be.
    pub(crate) name: String,
    /// The text.
    pub(crate) text: String,
}

/// Files that were written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PagesDocument {
    /// Their paths.
    pub(crate) files: Vec<String>,
}
