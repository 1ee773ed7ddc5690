//! Failed tasks in groups with the same exit code or signal and the same last line of stderr.

use std::collections::BTreeMap;

use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::job::{JobId, JobView, TaskState, TaskView};
use turno_proto::model::limits::PAGE_MAX;

use super::select::{Ranges, told};
use super::{JobClient, named};
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::output::Output;
use crate::cli::schema::failures::{FailureBody, FailuresBody};
use crate::cli::shown::Page;
use crate::cli::table;
use crate::cli::words;
use crate::process::Exit;

/// Failed tasks that are read. Of more, only the number is told.
const READ_MAX: u64 = 20_000;
/// Groups that are told apart. What fits in none of them is counted.
const GROUPS_MAX: usize = 1_000;
/// Groups that are told.
const TOLD_MAX: usize = 12;
/// Ranges of tasks that are named of a group.
const RANGES_MAX: usize = 5;
/// Characters of what a worker said.
const TEXT_MAX: usize = 160;

/// The common part of a group: exit code, signal, and the text without its numbers.
type Alike = (Option<i32>, Option<i32>, String);

struct FailureGroup {
    /// The words of the first.
    text: String,
    /// Whether all have these words.
    same: bool,
    count: u64,
    ranges: Ranges,
    more: bool,
}

/// Puts failed tasks into groups, one after the other.
pub(super) struct Grouping {
    job: JobId,
    /// From one task's number to the next.
    step: u32,
    groups: BTreeMap<Alike, FailureGroup>,
    seen: u64,
}

impl Grouping {
    pub(super) fn new(view: &JobView) -> Self {
        Self { job: view.id, step: view.numbers().array.step, groups: BTreeMap::new(), seen: 0 }
    }

    /// A failed task; they come in the order of their numbers.
    pub(super) fn add(&mut self, task: &TaskView) {
        self.seen += 1;
        let text = told_of(task);
        let alike = (task.exit_code, task.signal, masked(&text));
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&alike) {
            return;
        }
        let group = self.groups.entry(alike).or_insert_with(|| FailureGroup {
            text: text.clone(),
            same: true,
            count: 0,
            ranges: Vec::new(),
            more: false,
        });
        group.count += 1;
        group.same &= group.text == text;
        let full = group.more || group.ranges.len() >= RANGES_MAX;
        match group.ranges.last_mut() {
            Some((_, last)) if !group.more && last.checked_add(self.step) == Some(task.task) => *last = task.task,
            _ if full => group.more = true,
            _ => group.ranges.push((task.task, task.task)),
        }
    }

    /// The largest groups of so many failed tasks.
    pub(super) fn finish(self, failed: u64) -> FailuresBody {
        let mut groups: Vec<(Alike, FailureGroup)> = self.groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| (std::cmp::Reverse(group.count), group.ranges.first().copied()));
        groups.truncate(TOLD_MAX);
        let groups: Vec<FailureBody> = groups
            .into_iter()
            .map(|((exit_code, signal, masked), group)| FailureBody {
                exit_code,
                signal,
                text: headed(exit_code, signal, if group.same { &group.text } else { &masked }),
                count: group.count,
                tasks: format!("{}.{}", self.job, told(&group.ranges)),
                more: group.more,
            })
            .collect();
        let grouped: u64 = groups.iter().map(|group| group.count).sum();
        FailuresBody { groups, others: failed.max(self.seen).saturating_sub(grouped) }
    }
}

/// The worker's text, in one line, without the exit code in front of it.
fn told_of(task: &TaskView) -> String {
    let line = words::one_line(task.status.as_deref().unwrap_or_default());
    let rest = task.exit_code.and_then(|code| {
        let rest = line.strip_prefix(&Exit { code: Some(code), signal: None }.to_string())?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix(": ") }
    });
    rest.unwrap_or(&line).chars().take(TEXT_MAX).collect()
}

/// The words behind the exit code; without words, what is known.
fn headed(exit_code: Option<i32>, signal: Option<i32>, text: &str) -> String {
    match (exit_code, signal, text) {
        (None, None, "") => "failed without a reason".to_owned(),
        (Some(_), _, _) | (None, Some(_), "") => Exit { code: exit_code, signal }.with(text),
        (None, _, text) => text.to_owned(),
    }
}

/// Each number is `#`: what failed on file 17 and on file 18 failed alike.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            false => masked.push(letter),
            true if masked.ends_with('#') => {}
            true => masked.push('#'),
        }
    }
    masked
}

/// For people: one line a group.
pub(super) fn text(failures: &FailuresBody) -> Page {
    let mut lines = vec![["COUNT", "FAILURE", "TASKS"].map(ToOwned::to_owned).to_vec()];
    lines.extend(failures.groups.iter().map(|group| {
        let more = if group.more { ",..." } else { "" };
        vec![group.count.to_string(), group.text.clone(), format!("{}{more}", group.tasks)]
    }));
    if failures.others > 0 {
        lines.push(vec![failures.others.to_string(), "others".to_owned(), "-".to_owned()]);
    }
    table::layout(&lines, &[true, false, false])
}

/// Prints hints about the failures.
pub(super) fn hints(job: JobId, output: &Output) {
    output.hint(&format!("show their output: turno job logs {job} --failed"));
    output.hint(&format!("retry them: turno job retry {job} --failed"));
}

impl JobClient<'_> {
    /// Its failed tasks, grouped; nothing if it has none.
    pub(super) async fn failures(&self, view: &JobView) -> Result<Option<FailuresBody>, Failure> {
        if view.counts.failed == 0 {
            return Ok(None);
        }
        let mut grouping = Grouping::new(view);
        let mut after = None;
        while grouping.seen < READ_MAX {
            let call = AdminCall::JobTasks { job: view.id, state: Some(TaskState::Failed), after, limit: PAGE_MAX };
            let (tasks, next) = match self.admin(call).await.map_err(|failure| named(failure, view.id))? {
                AdminAnswer::Tasks { tasks, next } => (tasks, next),
                other => return Err(connect::unexpected(&other)),
            };
            tasks.iter().for_each(|task| grouping.add(task));
            // A page may be empty and not the last. One that does not go on would never end.
            match next {
                Some(next) if Some(next) > after => after = Some(next),
                _ => break,
            }
        }
        Ok(Some(grouping.finish(view.counts.failed.into())))
    }

    /// The same for a job that is told of in any case.
    pub(super) async fn failures_if_told(&self, view: &JobView) -> Option<FailuresBody> {
        self.failures(view).await.unwrap_or_else(|failure| {
            let warning = format!("cannot list the failed tasks of job {}: {}", view.id, failure.what());
            self.invocation.output.warn(&warning);
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::TaskId;
    use turno_proto::model::job::Array;

    use super::*;
    use crate::cli::job::tests::view;

    fn failed(task: u32, exit_code: Option<i32>, signal: Option<i32>, status: &str) -> TaskView {
        TaskView {
            exit_code,
            signal,
            status: (!status.is_empty()).then(|| status.to_owned()),
            ..TaskView::new(TaskId { job: JobId(7), task }, TaskState::Failed, 1)
        }
    }

    fn grouped(step: u32, tasks: &[TaskView]) -> FailuresBody {
        let job = view(7);
        let array = Array { step, ..job.numbers().array };
        let mut grouping = Grouping::new(&JobView { array: array.into(), ..job });
        tasks.iter().for_each(|task| grouping.add(task));
        grouping.finish(tasks.len() as u64)
    }

    fn rows(failures: &FailuresBody) -> Vec<(u64, &str, &str)> {
        failures.groups.iter().map(|group| (group.count, group.text.as_str(), group.tasks.as_str())).collect()
    }

    #[test]
    fn tasks_that_failed_alike_are_one_group() {
        let failures = grouped(
            1,
            &[
                failed(1, Some(2), None, "exit 2: usage: sim FILE"),
                failed(3, Some(3), None, "exit 3: cannot open 17.dat"),
                failed(9, Some(3), None, "exit 3: cannot open 18.dat"),
                failed(10, Some(3), None, "exit 3: cannot open 18.dat"),
                failed(12, None, Some(9), "killed by signal 9"),
                failed(13, None, Some(9), "killed by signal 9"),
                failed(14, Some(3), None, "exit 3: no memory"),
                failed(15, Some(4), None, ""),
                failed(16, Some(4), None, "exit 4"),
                failed(17, None, Some(11), ""),
                failed(18, None, None, ""),
                failed(19, Some(31), None, "exit 3: a worker that says something else"),
                failed(20, Some(127), None, "not found: ./sim"),
            ],
        );
        assert_eq!(
            rows(&failures),
            [
                (3, "exit 3: cannot open #.dat", "7.3,9-10"),
                (2, "killed by signal 9", "7.12-13"),
                (2, "exit 4", "7.15-16"),
                (1, "exit 2: usage: sim FILE", "7.1"),
                (1, "exit 3: no memory", "7.14"),
                (1, "killed by signal 11", "7.17"),
                (1, "failed without a reason", "7.18"),
                (1, "exit 31: exit 3: a worker that says something else", "7.19"),
                (1, "exit 127: not found: ./sim", "7.20"),
            ]
        );
        assert_eq!(failures.others, 0);
    }

    #[test]
    fn ranges_are_those_of_the_array_and_few() {
        let alike = |numbers: &[u32]| numbers.iter().map(|n| failed(*n, Some(1), None, "exit 1")).collect::<Vec<_>>();
        assert_eq!(rows(&grouped(10, &alike(&[10, 20, 30, 50]))), [(4, "exit 1", "7.10-30,50")]);
        let many = grouped(1, &alike(&[1, 3, 5, 7, 9, 11, 12]));
        assert_eq!((rows(&many), many.groups[0].more), (vec![(7, "exit 1", "7.1,3,5,7,9")], true));
        assert_eq!(text(&many), "COUNT  FAILURE  TASKS\n    7  exit 1   7.1,3,5,7,9,...\n");
    }

    #[test]
    fn groups_are_bounded_and_the_rest_is_counted() {
        // Words without numbers, each another.
        let word = |n: u32| n.to_string().bytes().map(|digit| char::from(digit + 49)).collect::<String>();
        let tasks: Vec<TaskView> = (0..3_000).map(|n| failed(n, Some(1), None, &word(n))).collect();
        let failures = grouped(1, &tasks);
        assert_eq!((failures.groups.len(), failures.others), (TOLD_MAX, 3_000 - TOLD_MAX as u64));
        assert!(text(&failures).contains("\n 2988  others "), "{}", text(&failures));
        let read = Grouping::new(&view(7)).finish(5);
        assert_eq!((read.groups.len(), read.others), (0, 5), "what was not read is counted too");
    }

    /// A worker's text is escaped for the terminal.
    #[test]
    fn words_of_a_worker_are_one_harmless_line() {
        let hostile = "\x1b[2J\x1b]0;gone\x07two\r\n\tlines \u{202e}back\u{9b}31m";
        let failures = grouped(1, &[failed(1, None, None, hostile)]);
        assert!(failures.groups[0].text.contains("gone\x07two lines \u{202e}back"), "programs get it as it is");
        let shown = text(&failures);
        assert!(shown.contains(r"\x1b[2J\x1b]0;gone\x07two lines \u{202e}back\x9b31m"), "{shown:?}");
        assert_eq!(shown.lines().count(), 2, "{shown:?}");
        let long = grouped(1, &[failed(1, Some(1), None, &"ä".repeat(1_000))]);
        assert_eq!(long.groups[0].text.chars().count(), TEXT_MAX + "exit 1: ".len());
    }
}
