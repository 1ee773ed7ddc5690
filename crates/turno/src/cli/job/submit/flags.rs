//! The flags of a submission: on the command line, and in the `#TURNO` lines of a script.
//!
//! None of them has a default here: what was not said on the command line may have been said in the script.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use turno_proto::model::limits::PRIORITY_MAX;

use super::values::{
    AfterArg, ArrayArg, parse_backoff, parse_collect, parse_key, parse_label, parse_name, parse_pool, parse_tag,
    parse_time_limit, parse_variable,
};

/// Headings of the help.
const TASKS: &str = "Tasks";
const COMMAND: &str = "Command and files";
const WHEN: &str = "When and where";

/// The flags of a submission.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    #[command(flatten)]
    pub(super) source: Source,

    /// Run CMD with `sh -c`
    ///
    /// Each placeholder is inserted as one quoted word.
    #[arg(long, help_heading = COMMAND)]
    pub(super) shell: bool,

    /// Working directory on every worker
    ///
    /// Without it, a task runs in the current directory if the worker has it, and otherwise in a temporary directory of
    /// its own. A task with files always runs in a temporary directory.
    #[arg(long, help_heading = COMMAND, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,

    /// Environment variable; repeatable
    #[arg(long, help_heading = COMMAND, value_name = "KEY=VALUE", value_parser = parse_variable)]
    pub(super) env: Vec<(String, String)>,

    /// File for the command's standard input [default: none]
    #[arg(long, help_heading = COMMAND, value_name = "FILE", hide_short_help = true)]
    pub(super) stdin: Option<PathBuf>,

    /// Copy files into the task's directory
    ///
    /// A directory stands for all files below it; =NAME renames a file.
    #[arg(long, help_heading = COMMAND, value_name = "FILE[=NAME]", num_args = 1..)]
    pub(super) upload: Vec<PathBuf>,

    /// Return these files when a task finishes
    ///
    /// A pattern for paths in the task's directory, for example 'out/*.csv'; repeatable.
    #[arg(long, help_heading = COMMAND, value_name = "GLOB", value_parser = parse_collect)]
    pub(super) collect: Vec<String>,

    /// Write task output to files on the worker
    ///
    /// The output goes to this directory instead of the broker.
    #[arg(long, help_heading = COMMAND, value_name = "DIR", hide_short_help = true)]
    pub(super) out_dir: Option<PathBuf>,

    /// Job name [default: the name of the program or script]
    #[arg(long, value_parser = parse_name)]
    pub(super) name: Option<String>,

    /// Tag to find the job by; repeatable
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    pub(super) tag: Vec<String>,

    /// Slots per task [default: 1]
    #[arg(long, help_heading = WHEN, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) slots: Option<u16>,

    /// Priority 0 to 9; 9 is highest [default: 4]
    #[arg(long, help_heading = WHEN, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=i64::from(PRIORITY_MAX)))]
    pub(super) priority: Option<u8>,

    /// Maximum number of tasks running at a time
    ///
    /// The same as %MAX after --array.
    #[arg(long, help_heading = WHEN, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_parallel: Option<u32>,

    /// Time limit of one attempt of a task
    #[arg(long, help_heading = WHEN, value_name = "DURATION", value_parser = parse_time_limit)]
    pub(super) time_limit: Option<Duration>,

    /// Retries of a failed task [default: 0]
    #[arg(long, help_heading = WHEN, value_name = "N")]
    pub(super) retries: Option<u8>,

    /// Delay before the second attempt; doubles for each later one [default: 0]
    #[arg(long, help_heading = WHEN, value_name = "DURATION", value_parser = parse_backoff, hide_short_help = true)]
    pub(super) backoff: Option<Duration>,

    /// Cancel the rest when more than N tasks have failed
    #[arg(long, help_heading = WHEN, value_name = "N", hide_short_help = true)]
    pub(super) max_failures: Option<u32>,

    /// Only workers with this label; repeatable
    ///
    /// A worker must have all the labels.
    #[arg(long, help_heading = WHEN, value_name = "KEY=VALUE", value_parser = parse_label)]
    pub(super) label: Vec<(String, String)>,

    /// Only workers in this pool; short for --label pool=P
    #[arg(long, help_heading = WHEN, value_name = "P", value_parser = parse_pool, hide_short_help = true)]
    pub(super) pool: Option<String>,

    /// Start after this job has ended; repeatable
    ///
    /// JOB or JOB:ok: if every task finished. JOB:failed: if not. JOB:any: in both cases.
    #[arg(long, help_heading = WHEN, value_name = "JOB[:WHEN]")]
    pub(super) after: Vec<AfterArg>,

    /// Hold the job until `turno job release`
    #[arg(long, help_heading = WHEN)]
    pub(super) hold: bool,

    /// Idempotency key: the same key is the same job
    ///
    /// A second submission with the same key returns the first job. A key has 1 to 64 bytes.
    #[arg(long, value_parser = parse_key, hide_short_help = true)]
    pub(super) key: Option<String>,

    /// Wait until the job has ended
    #[arg(long)]
    pub(super) wait: bool,

    /// Show the submission without submitting it
    ///
    /// Shows the number of tasks, the first and the last command, and the files; needs no broker.
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// The source of tasks. At most one; without it there is one task.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[group(id = "tasks", multiple = false)]
pub(super) struct Source {
    /// One task per number: 1-1000, 0-90:10 or 1,3,5-8
    ///
    /// A single number such as 8 is one task with that number. %MAX limits how many tasks run at a time.
    #[arg(long, help_heading = TASKS, value_name = "LIST[%MAX]")]
    pub(super) array: Option<ArrayArg>,

    /// One task per line of a file; - is standard input
    ///
    /// Empty lines are skipped.
    #[arg(long, help_heading = TASKS, value_name = "FILE")]
    pub(super) each_line: Option<PathBuf>,

    /// One task per CSV row; {column} inserts a field
    ///
    /// The header row names the columns.
    #[arg(long, help_heading = TASKS, value_name = "FILE")]
    pub(super) each_csv: Option<PathBuf>,

    /// One task per JSON value; {key} inserts a member
    ///
    /// The file has a JSON array, or one JSON value per line.
    #[arg(long, help_heading = TASKS, value_name = "FILE")]
    pub(super) each_json: Option<PathBuf>,

    /// One task per matching path, such as 'data/*.csv'
    ///
    /// The paths are sorted by name; ** stands for any directories. Quote the pattern.
    #[arg(long, help_heading = TASKS, value_name = "PATTERN")]
    pub(super) glob: Option<String>,

    /// One task per value, up to the next flag or --
    ///
    /// Use it once. For combinations of several lists, write them to a file for --each-csv.
    #[arg(long, help_heading = TASKS, value_name = "VALUE", num_args = 1.., allow_negative_numbers = true, action = ArgAction::Set)]
    pub(super) each: Vec<String>,
}

impl Source {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Flags {
    /// Both together: what is said here beats what is said `below`; what may be repeated adds up.
    #[must_use]
    pub(super) fn over(self, below: Self) -> Self {
        // Where the tasks come from is one thing. How many run at a time may be said with them.
        let max_parallel = self.at_a_time().or_else(|| below.at_a_time());
        Self {
            source: if self.source.is_none() { below.source } else { self.source },
            shell: self.shell || below.shell,
            cwd: self.cwd.or(below.cwd),
            env: both(below.env, self.env),
            stdin: self.stdin.or(below.stdin),
            upload: both(below.upload, self.upload),
            collect: both(below.collect, self.collect),
            out_dir: self.out_dir.or(below.out_dir),
            name: self.name.or(below.name),
            tag: both(below.tag, self.tag),
            slots: self.slots.or(below.slots),
            priority: self.priority.or(below.priority),
            max_parallel,
            time_limit: self.time_limit.or(below.time_limit),
            retries: self.retries.or(below.retries),
            backoff: self.backoff.or(below.backoff),
            max_failures: self.max_failures.or(below.max_failures),
            label: both(below.label, self.label),
            pool: self.pool.or(below.pool),
            after: both(below.after, self.after),
            hold: self.hold || below.hold,
            key: self.key.or(below.key),
            wait: self.wait || below.wait,
            dry_run: self.dry_run || below.dry_run,
        }
    }

    /// Tasks that run at a time at most. The flag beats what stands behind an array.
    pub(super) fn at_a_time(&self) -> Option<u32> {
        self.max_parallel.or_else(|| self.source.array.as_ref().and_then(|array| array.max_parallel))
    }

    /// One command, and not an array or a list of things to do.
    pub(super) fn is_one(&self) -> bool {
        self.source.is_none()
    }
}

fn both<T>(mut first: Vec<T>, second: Vec<T>) -> Vec<T> {
    first.extend(second);
    first
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Typed {
        #[command(flatten)]
        flags: Flags,
    }

    fn typed(line: &str) -> Flags {
        Typed::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}")).flags
    }

    #[test]
    fn the_command_line_beats_the_script_and_what_is_repeated_adds_up() {
        let below = typed(
            "--array 1-9%2 --cwd /a --env A=1 --stdin x --upload u --collect c --out-dir o --name n --tag t --slots 2 \
             --priority 1 --time-limit 1s --retries 1 --backoff 1s --max-failures 1 --label a=b --pool p --after 1 --key k",
        );
        let over = typed(
            "--each a b --shell --cwd /b --env A=2 --stdin y --upload v --collect d --out-dir q --name m --tag s --slots 3 \
             --priority 2 --time-limit 2s --retries 2 --backoff 2s --max-failures 2 --label c=d --pool q --after 2 --key l \
             --hold --wait --dry-run",
        );
        assert_eq!(Flags::default().over(below.clone()), Flags { max_parallel: Some(2), ..below.clone() });
        let both = over.clone().over(below.clone());
        assert_eq!(
            both,
            Flags {
                // How many run at a time was said with the array, and is not what the command line replaces.
                max_parallel: Some(2),
                env: [below.env, over.env.clone()].concat(),
                upload: [below.upload, over.upload.clone()].concat(),
                collect: [below.collect, over.collect.clone()].concat(),
                tag: [below.tag, over.tag.clone()].concat(),
                label: [below.label, over.label.clone()].concat(),
                after: [below.after, over.after.clone()].concat(),
                ..over
            }
        );
        assert!(both.source.array.is_none() && both.source.each == ["a", "b"]);
    }

    #[test]
    fn a_second_list_of_values_is_refused() {
        let typed = |line: &str| Typed::try_parse_from(line.split_whitespace()).map(|typed| typed.flags.source.each);
        assert_eq!(typed("--each a b c").unwrap(), ["a", "b", "c"]);
        let error = typed("--each a b --each c d").map(drop).unwrap_err();
        assert!(error.to_string().contains("cannot be used multiple times"), "{error}");
    }

    #[test]
    fn how_many_run_at_a_time_is_what_was_said_last() {
        let table = [
            ("--array 1-9%2", "", Some(2)),
            ("--array 1-9%2", "--max-parallel 3", Some(3)),
            ("--max-parallel 3", "--array 1-9%2", Some(2)),
            ("--max-parallel 3", "--array 1-9", Some(3)),
            ("", "--array 1-9%2 --max-parallel 5", Some(5)),
            ("", "", None),
        ];
        for (below, over, expected) in table {
            assert_eq!(typed(over).over(typed(below)).at_a_time(), expected, "{below} / {over}");
        }
    }
}
