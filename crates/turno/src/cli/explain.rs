//! `turno explain`: what a code means.

use clap::Args;
use turno_broker::config::nearest;
use turno_proto::model::Code;

use super::Invocation;
use super::error::Failure;
use super::help;
use super::schema::meta::{CodeDocument, CodeListDocument, CodeRow};
use super::table;

/// Explain an error code
///
/// Without a code, lists all codes with their exit status.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno explain no_responder", "turno explain", "turno explain -o name"], &[4]))]
pub(crate) struct ExplainArgs {
    /// Error code, as shown after `code:`
    code: Option<String>,
}

pub(crate) fn run(args: &ExplainArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let output = &invocation.output;
    let Some(word) = &args.code else {
        let rows: Vec<CodeRow> = Code::ALL.iter().map(|code| CodeRow::from(*code)).collect();
        output.rows(&CodeListDocument { codes: &rows }, &rows)?;
        return Ok(0);
    };
    let code: Code = word.to_lowercase().replace('-', "_").parse().map_err(|()| unknown(word))?;
    let row = CodeRow::from(code);
    let name = row.code.clone();
    let text = table::facts(&[
        ("code", name.clone()),
        ("what", row.what.clone()),
        ("why", row.why.clone()),
        ("fix", row.fix.clone()),
        ("exit", row.exit.to_string()),
    ]);
    output.one(&CodeDocument { code: row }, &name, || text)?;
    Ok(0)
}

fn unknown(word: &str) -> Failure {
    let failure = Failure::new(Code::NotFound, format!("unknown code {word:?}"))
        .why("error messages show the code after `code:`");
    match nearest(word, Code::ALL.iter().map(|code| code.name())) {
        Some(near) => failure.fix(format!("did you mean {near}? `turno explain` lists all codes")),
        None => failure.fix("`turno explain` lists all codes"),
    }
}
