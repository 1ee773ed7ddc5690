//! The end of every command's long help: examples and exit codes.

use std::fmt::Write as _;

/// What each exit status means, everywhere.
pub(crate) const EXITS: &[(u8, &str)] = &[
    (0, "done"),
    (1, "the operation failed, here or at the worker"),
    (2, "wrong usage"),
    (3, "partly done"),
    (4, "not found"),
    (5, "cannot connect, or the connection was lost"),
    (6, "no responder"),
    (78, "configuration error"),
    (124, "timed out"),
    (125, "waiting for one command: turno itself failed"),
    (126, "waiting for one command: it cannot be executed"),
    (127, "waiting for one command: it was not found"),
    (130, "interrupted"),
    (143, "terminated"),
];

/// The heading under which examples stand.
pub(crate) const EXAMPLES: &str = "Examples:";

/// The heading under which exit codes stand.
pub(crate) const EXIT_STATUS: &str = "Exit status:";

/// The text after a leaf's long help. Wrong usage and success need no mention: every command has them.
pub(crate) fn notes(examples: &[&str], exits: &[u8]) -> String {
    let mut text = format!("{EXAMPLES}\n");
    for example in examples {
        let _ = writeln!(text, "  {example}");
    }
    let _ = write!(text, "\n{EXIT_STATUS}\n");
    for (status, meaning) in EXITS.iter().filter(|(status, _)| matches!(status, 0 | 2) || exits.contains(status)) {
        let _ = writeln!(text, "  {status:<4}{meaning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_show_examples_and_the_exits_named() {
        let text = notes(&["turno status --json"], &[5]);
        assert_eq!(
            text,
            "Examples:\n  turno status --json\n\nExit status:\n  0   done\n  2   wrong usage\n  \
             5   cannot connect, or the connection was lost\n"
        );
    }
}
