//! Documents about the program itself.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::Code;

use crate::cli::table::{Column, Row, columns};

/// A code and what it means.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CodeRow {
    /// The stable word.
    pub(crate) code: String,
    /// Its number on the wire.
    pub(crate) number: u32,
    /// The exit status of a command that ends with it.
    pub(crate) exit: u8,
    /// The failure, in one line.
    pub(crate) what: String,
    /// Why it happens.
    pub(crate) why: String,
    /// Advice.
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
    const COLUMNS: &'static [Column<Self>] = columns![
        code;
        exit;
        wide number;
        what as "MEANING";
        wide why;
        wide fix;
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
