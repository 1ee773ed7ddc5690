//! The end of every command's help: examples, the global options, and exit codes.

use std::fmt::Write as _;

use clap::{Arg, Args as _, Command};

use super::global::Global;

/// The meaning of each exit status, for all commands.
pub(crate) const EXITS: &[(u8, &str)] = &[
    (0, "done"),
    (1, "the operation failed"),
    (2, "invalid usage"),
    (3, "partially done"),
    (4, "not found"),
    (5, "cannot connect, or the connection was lost"),
    (6, "no responder"),
    (78, "configuration error"),
    (124, "timed out"),
    (125, "--wait of one command: turno itself failed"),
    (126, "--wait of one command: not executable"),
    (127, "--wait of one command: not found"),
    (130, "interrupted"),
    (143, "terminated"),
];

/// The heading under which examples stand.
pub(crate) const EXAMPLES: &str = "Examples:";

/// The heading under which exit codes stand.
pub(crate) const EXIT_STATUS: &str = "Exit status:";

/// The heading of the global options.
pub(crate) const GLOBAL_OPTIONS: &str = "Global options:";

/// Examples in a short help, and the longest that has room there.
const SHORT_EXAMPLES: usize = 3;
const SHORT_EXAMPLE_MAX: usize = 76;

/// The width for which short help is made.
const SHORT_WIDTH: usize = 80;

/// The end of a short help: the first examples of the long one, then the global options by name.
pub(crate) fn short(long: &str) -> String {
    let examples: Vec<&str> = long
        .split_once(EXAMPLES)
        .map(|(_, rest)| rest.trim_start().lines().take_while(|line| !line.is_empty()))
        .into_iter()
        .flatten()
        .map(str::trim)
        .filter(|example| example.len() <= SHORT_EXAMPLE_MAX)
        .take(SHORT_EXAMPLES)
        .collect();
    let mut text = String::new();
    if !examples.is_empty() {
        let _ = writeln!(text, "{EXAMPLES}");
        for example in examples {
            let _ = writeln!(text, "  {example}");
        }
        text.push('\n');
    }
    text + &global_names()
}

/// The global options in a few lines, each as short as it can be typed.
fn global_names() -> String {
    let command = Global::augment_args(Command::new("turno"));
    let mut lines = vec![GLOBAL_OPTIONS.to_owned()];
    for argument in command.get_arguments() {
        let name = short_flag(argument);
        match lines.last_mut() {
            Some(line) if line.len() + 2 + name.len() <= SHORT_WIDTH => line.push_str(&format!("  {name}")),
            _ => lines.push(format!("  {name}")),
        }
    }
    lines.push("--help explains all options and has more examples and exit codes".to_owned());
    lines.join("\n")
}

/// `-o FORMAT`, or the long name where there is no short one.
fn short_flag(argument: &Arg) -> String {
    let long = || format!("--{}", argument.get_long().unwrap_or_default());
    argument.get_short().map_or_else(long, |short| format!("-{short}")) + &value(argument)
}

/// The global options, one line each: clap would print a paragraph for each of them below every command.
pub(crate) fn global_options() -> String {
    let command = Global::augment_args(Command::new("turno"));
    let rows: Vec<(String, String)> =
        command.get_arguments().map(|argument| (flags(argument), meaning(argument))).collect();
    let width = rows.iter().map(|(flags, _)| flags.len()).max().unwrap_or(0);
    let mut text = format!("{GLOBAL_OPTIONS}\n");
    for (flags, meaning) in rows {
        let _ = writeln!(text, "  {flags:<width$}  {meaning}");
    }
    text
}

fn flags(argument: &Arg) -> String {
    let short = argument.get_short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let long = argument.get_long().unwrap_or_default();
    format!("{short}--{long}{}", value(argument))
}

/// The value of an option, after a blank; nothing for a switch.
fn value(argument: &Arg) -> String {
    let names = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    names.map(|names| format!(" {}", names.join(" "))).unwrap_or_default()
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let is_choice = argument.get_action().takes_values() && !values.is_empty();
    let values = if is_choice { format!(": {}", values.join(", ")) } else { String::new() };
    let variable = argument.get_env().map(|name| format!(" [env: {}]", name.to_string_lossy())).unwrap_or_default();
    format!("{help}{values}{variable}")
}

/// The text after a leaf's long help. Invalid usage and success need no mention: every command has them.
pub(crate) fn notes(examples: &[&str], exits: &[u8]) -> String {
    let mut text = format!("{EXAMPLES}\n");
    for example in examples {
        let _ = writeln!(text, "  {example}");
    }
    let _ = write!(text, "\n{}\n{EXIT_STATUS}\n", global_options());
    for (status, meaning) in EXITS.iter().filter(|(status, _)| matches!(status, 0 | 2) || exits.contains(status)) {
        let _ = writeln!(text, "  {status:<4}{meaning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_help_ends_with_examples_that_fit_and_the_names_of_the_global_options() {
        let long = "x".repeat(SHORT_EXAMPLE_MAX + 1);
        let text = short(&notes(&["turno status", &long, "turno status --json", "turno a", "turno b"], &[5]));
        let (examples, names) = text.split_once(GLOBAL_OPTIONS).unwrap();
        assert_eq!(examples, "Examples:\n  turno status\n  turno status --json\n  turno a\n\n");
        assert!(names.contains("--url URL") && names.contains("  -o FORMAT  --json  "), "{names}");
        assert!(text.lines().all(|line| line.len() <= SHORT_WIDTH) && text.lines().count() <= 9, "{text}");
        assert!(short("").starts_with(GLOBAL_OPTIONS), "a group of commands has no examples");
    }

    #[test]
    fn notes_show_examples_and_the_exits_named() {
        let text = notes(&["turno status --json"], &[5]);
        let (examples, rest) = text.split_once(GLOBAL_OPTIONS).unwrap();
        assert_eq!(examples, "Examples:\n  turno status --json\n\n");
        let (globals, exits) = rest.split_once(EXIT_STATUS).unwrap();
        assert!(
            globals.contains(
                "\n  -o, --output FORMAT     Output format: text, wide, json, jsonl, name [env: TURNO_OUTPUT]\n"
            ),
            "{globals}"
        );
        assert!(globals.lines().all(|line| line.len() <= 100), "{globals}");
        assert_eq!(exits, "\n  0   done\n  2   invalid usage\n  5   cannot connect, or the connection was lost\n");
    }
}
