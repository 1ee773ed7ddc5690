//! Confirmation before something is destroyed.

use std::io::{self, BufRead as _, IsTerminal as _};

use turno_proto::model::Code;

use super::Invocation;
use super::error::Failure;

/// Asks, unless `--yes` answered already. Without a terminal, or with `--no-input`, nobody is there to ask: that is an error.
/// A no is an answer like any other: the command ends without an error and has changed nothing.
pub(crate) fn ask(invocation: &Invocation, question: &str) -> Result<(), Failure> {
    if invocation.global.yes {
        return Ok(());
    }
    if invocation.global.no_input || !io::stdin().is_terminal() {
        return Err(Failure::new(Code::NotConfirmed, format!("confirmation required: {question}")));
    }
    invocation.output.prompt(question);
    let mut answer = String::new();
    // An answer that cannot be read is no yes.
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => {
            invocation.output.note("nothing was changed");
            Err(Failure::declined())
        }
    }
}
