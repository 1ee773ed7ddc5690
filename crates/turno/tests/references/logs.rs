//! `docs/reference/logs.md`: every line that a broker or a job worker logs by default, from the calls in the code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::same_as_published;

const HEAD: &str = "\
# Logs

A broker logs to stderr. `log.format` (`turno serve --log-format json`) selects text or one JSON object per line; `log.level`,
`-v` and `TURNO_LOG` select the level. In JSON every line has `timestamp`, `level`, `target` and `message`; all other fields have
plain values: text, numbers, true or false. Lists are one comma-separated text; a missing value is an empty text.

The tables list all lines at the default level, `info`, and above. They are generated from the calls in the code; `…` stands for
text that differs. Lines that clients cause are limited to a few per second: omitted ones are counted, and the next line of the
same kind contains the number.

Some fields: `code` is an error code (`turno explain CODE`), `worker` the id of a worker, `kind` what it works on (`queues` or
`jobs`), `in_use` its slots in use, `in_flight` the number of deliveries at workers, `tasks` the number of running tasks of jobs.
`came` and `went` are the sids of members that joined and left. At the end of a broker, `returned` counts the requests that went
back to their callers, `cut` the interrupted deliveries, and `lost` the messages that were in memory only.
";

const TESTS: &str = "\n#[cfg(test)]\nmod tests";

/// Files whose lines are those of a broker, and those of a job worker.
const BROKER: [&str; 4] = ["broker/src", "store/src", "turno/src/cli/serve.rs", "turno/src/cli/exposure.rs"];
const JOB_WORKER: [&str; 1] = ["turno/src/job_worker"];

/// Fields of a line, by its message and level.
type Lines = BTreeMap<(String, &'static str), Vec<String>>;

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries =
            fs::read_dir(path).expect("a directory of the project").map(|entry| entry.expect("an entry").path());
        entries.filter(|entry| !entry.ends_with("tests")).for_each(|entry| sources(&entry, found));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_owned());
    }
}

/// The text up to the bracket that closes the one before it, and its parts between commas. Brackets and commas inside
/// literals and inner brackets do not count.
fn arguments(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut depth, mut in_literal, mut is_escaped) = (0, false, false);
    for letter in text.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if in_literal => is_escaped = true,
            '"' => in_literal = !in_literal,
            _ if in_literal => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// A literal as it is logged, with an ellipsis for each placeholder.
fn message(literal: &str) -> String {
    let joined: Vec<&str> = literal.trim_matches('"').split("\\\n").map(str::trim_start).collect();
    let mut text = String::new();
    for (number, piece) in joined.concat().split('{').enumerate() {
        match piece.split_once('}') {
            Some((_, rest)) if number > 0 => write!(text, "…{rest}").expect("a String takes everything"),
            _ => text.push_str(piece),
        }
    }
    text.replace('`', "")
}

/// `%error`, `code = %fault.code` and `count` name a field each.
fn field(part: &str) -> String {
    let name = part.split('=').next().unwrap_or_default();
    name.trim().trim_start_matches(['%', '?']).to_owned()
}

fn lines(roots: &[&str]) -> Lines {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    roots.iter().for_each(|root| sources(&crates.join(root), &mut files));
    let mut found = Lines::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.split(TESTS).next().unwrap_or_default();
        for level in ["info", "warn", "error"] {
            for call in code.split(&format!("{level}!(")).skip(1) {
                let parts = arguments(call);
                let Some(place) = parts.iter().position(|part| part.starts_with('"')) else { continue };
                let fields = found.entry((message(&parts[place]), level)).or_default();
                for name in parts[..place].iter().map(|part| field(part)) {
                    if !fields.contains(&name) {
                        fields.push(name);
                    }
                }
            }
        }
    }
    found
}

fn table(text: &mut String, title: &str, lines: &Lines) {
    write!(text, "\n## {title}\n\n| message | level | fields |\n|---|---|---|\n").expect("a String takes everything");
    for ((message, level), fields) in lines {
        let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
        writeln!(text, "| {message} | {level} | {} |", fields.join(", ")).expect("a String takes everything");
    }
}

/// Every line with its level and fields; none of them is only a placeholder.
#[test]
fn the_reference_of_log_lines_is_true() {
    let (broker, job_worker) = (lines(&BROKER), lines(&JOB_WORKER));
    assert!(broker.len() > 40 && job_worker.len() > 5, "{} and {} lines", broker.len(), job_worker.len());
    for ((message, _), _) in broker.iter().chain(&job_worker) {
        assert!(message.trim_matches(['…', ' ']).len() > 3, "a line without words of its own: {message}");
    }
    let mut text = HEAD.to_owned();
    table(&mut text, "Broker", &broker);
    table(&mut text, "Job worker", &job_worker);
    same_as_published("logs.md", &text);
}

#[test]
fn calls_are_read_as_they_are_written() {
    let parts = arguments("name = f(a, b), %error, \"a, (b) \\\"c\\\" {d}\", x); more(");
    assert_eq!(parts, ["name = f(a, b)", "%error", "\"a, (b) \\\"c\\\" {d}\"", "x"]);
    assert_eq!((field(&parts[0]), field(&parts[1])), ("name".to_owned(), "error".to_owned()));
    assert_eq!(message("\"lost: {}; {more} left\""), "lost: …; … left");
    assert_eq!(message("\"one \\\n      two\""), "one two");
}
