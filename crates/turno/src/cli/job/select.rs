//! Selectors of jobs and tasks: `7`, `last`, `1,3,5-8`, `1-100:2`, `all`; tasks `7.1-20`. `7`, `last`, `1,3,5-8`,
//! `1-100:2`, `all`; tasks `7.1-20`.

use std::str::FromStr;

use turno_proto::model::job::JobId;
use turno_proto::model::limits::TASK_NUMBER_MAX;

/// Ranges of tasks that one word may come to. More: refused, they would take too many calls.
const RANGES_MAX: usize = 1_000;

/// One job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobSelector {
    /// The latest.
    Last,
    /// The one with that number.
    Id(JobId),
}

/// Why a word means no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectError {
    #[error("invalid job: expected an id such as 7, or last")]
    One,
    #[error("invalid jobs: expected ids such as 7, 1,3,5-8 or 1-100:2, or last, or all")]
    Jobs,
    #[error("invalid tasks: expected a job and task numbers, such as 7.3, 7.1-20 or last.1,3,5-8")]
    Tasks,
    #[error("invalid tasks: expected numbers such as 3, 1-20 or 1,3,5-8")]
    Numbers,
    #[error("invalid range: must not decrease, with a step of at least 1")]
    Range,
    #[error("task numbers go up to {TASK_NUMBER_MAX}")]
    TooHigh,
    #[error("more than {RANGES_MAX} task ranges")]
    TooMany,
}

impl FromStr for JobSelector {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, SelectError> {
        match text {
            "last" => Ok(Self::Last),
            _ => number(text).map(|id| Self::Id(JobId(id))).ok_or(SelectError::One),
        }
    }
}

impl std::fmt::Display for JobSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Id(id) => id.fmt(f),
        }
    }
}

/// Numbers from `first` to `last`, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberSpan {
    first: u64,
    last: u64,
    step: u64,
}

impl NumberSpan {
    pub(super) const fn contains(&self, number: u64) -> bool {
        number >= self.first && number <= self.last && (number - self.first).is_multiple_of(self.step)
    }
}

/// A part of what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// That job must be there.
    One(JobSelector),
    /// Those of them that are there.
    Span(NumberSpan),
    /// Every one.
    All,
}

/// Jobs, as typed in one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jobs(pub(super) Vec<Item>);

impl FromStr for Jobs {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, SelectError> {
        text.split(',').map(item).collect::<Result<_, _>>().map(Self)
    }
}

/// Whether the words can mean one job alone, by the way they are written.
pub(super) fn is_one(words: &[Jobs]) -> bool {
    matches!(words, [Jobs(items)] if matches!(items[..], [Item::One(_)]))
}

fn item(text: &str) -> Result<Item, SelectError> {
    match text {
        "all" => Ok(Item::All),
        "last" => Ok(Item::One(JobSelector::Last)),
        _ => {
            let NumberSpan { first, last, step } = span(text, SelectError::Jobs)?;
            let one = first == last && !text.contains('-');
            Ok(if one {
                Item::One(JobSelector::Id(JobId(first)))
            } else {
                Item::Span(NumberSpan { first, last, step })
            })
        }
    }
}

/// Ranges of task numbers, both ends included.
pub(super) type Ranges = Vec<(u32, u32)>;

/// Jobs, or some tasks of one job, as typed in one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Jobs(Jobs),
    Tasks(JobSelector, Ranges),
}

impl FromStr for Target {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, SelectError> {
        match text.split_once('.') {
            None => text.parse().map(Self::Jobs),
            Some((job, tasks)) => Ok(Self::Tasks(job.parse().map_err(|_| SelectError::Tasks)?, ranges(tasks)?)),
        }
    }
}

impl Target {
    /// Whether the words can mean one job alone, by the way they are written.
    pub(super) fn is_one(words: &[Self]) -> bool {
        match words {
            [Self::Jobs(jobs)] => is_one(std::slice::from_ref(jobs)),
            [Self::Tasks(..)] => true,
            _ => false,
        }
    }
}

/// One job, or some of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobPart {
    pub(super) job: JobSelector,
    pub(super) tasks: Option<Ranges>,
}

impl FromStr for JobPart {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, SelectError> {
        match text.split_once('.') {
            None => Ok(Self { job: text.parse()?, tasks: None }),
            Some((job, tasks)) => {
                Ok(Self { job: job.parse().map_err(|_| SelectError::Tasks)?, tasks: Some(ranges(tasks)?) })
            }
        }
    }
}

/// Tasks of every job that is named beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskRanges(pub(super) Ranges);

impl FromStr for TaskRanges {
    type Err = SelectError;

    fn from_str(text: &str) -> Result<Self, SelectError> {
        ranges(text).map(Self).map_err(|error| match error {
            SelectError::Tasks => SelectError::Numbers,
            other => other,
        })
    }
}

/// In order, none inside or beside another.
fn ranges(text: &str) -> Result<Ranges, SelectError> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for part in text.split(',') {
        let NumberSpan { first, last, step } = span(part, SelectError::Tasks)?;
        if last > u64::from(TASK_NUMBER_MAX) {
            return Err(SelectError::TooHigh);
        }
        match step {
            1 => found.push((first, last)),
            _ => {
                if (last - first) / step >= RANGES_MAX as u64 {
                    return Err(SelectError::TooMany);
                }
                found.extend((first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX)).map(|n| (n, n)));
            }
        }
        if found.len() > RANGES_MAX {
            return Err(SelectError::TooMany);
        }
    }
    found.sort_unstable();
    let mut merged: Ranges = Vec::new();
    for (first, last) in found {
        let (Ok(first), Ok(last)) = (u32::try_from(first), u32::try_from(last)) else {
            return Err(SelectError::TooHigh);
        };
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    Ok(merged)
}

/// `7`, `1-20` or `1-20:2`.
fn span(text: &str, wrong: SelectError) -> Result<NumberSpan, SelectError> {
    let (range, step) = match text.split_once(':') {
        Some((range, step)) if range.contains('-') => (range, number(step).ok_or(wrong)?),
        Some(_) => return Err(wrong),
        None => (text, 1),
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (number(first).ok_or(wrong)?, number(last).ok_or(wrong)?);
    if last < first || step == 0 { Err(SelectError::Range) } else { Ok(NumberSpan { first, last, step }) }
}

fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Numbers in order as ranges of those side by side.
pub(super) fn joined(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    ranges
}

/// Ranges as typed.
pub(super) fn told<N: PartialEq + std::fmt::Display>(ranges: &[(N, N)]) -> String {
    let one = |(first, last): &(N, N)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn id(id: u64) -> Item {
        Item::One(JobSelector::Id(JobId(id)))
    }

    const fn span_of(first: u64, last: u64, step: u64) -> Item {
        Item::Span(NumberSpan { first, last, step })
    }

    #[test]
    fn jobs_as_typed() {
        let table: [(&str, Result<Vec<Item>, SelectError>); 15] = [
            ("7", Ok(vec![id(7)])),
            ("last", Ok(vec![Item::One(JobSelector::Last)])),
            ("all", Ok(vec![Item::All])),
            ("1,3,5-8", Ok(vec![id(1), id(3), span_of(5, 8, 1)])),
            ("1-100:2", Ok(vec![span_of(1, 100, 2)])),
            ("last,3", Ok(vec![Item::One(JobSelector::Last), id(3)])),
            ("5-5", Ok(vec![span_of(5, 5, 1)])),
            ("", Err(SelectError::Jobs)),
            ("1,", Err(SelectError::Jobs)),
            ("-7", Err(SelectError::Jobs)),
            ("+7", Err(SelectError::Jobs)),
            ("7:2", Err(SelectError::Jobs)),
            ("8-5", Err(SelectError::Range)),
            ("1-9:0", Err(SelectError::Range)),
            ("99999999999999999999", Err(SelectError::Jobs)),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Jobs>().map(|jobs| jobs.0), expected, "{text:?}");
        }
    }

    #[test]
    fn tasks_as_typed() {
        let tasks = |job, ranges: &[(u32, u32)]| Ok(Target::Tasks(job, ranges.to_vec()));
        let seven = JobSelector::Id(JobId(7));
        let table: [(&str, Result<Target, SelectError>); 14] = [
            ("7.3", tasks(seven, &[(3, 3)])),
            ("7.1-20", tasks(seven, &[(1, 20)])),
            ("last.0-4", tasks(JobSelector::Last, &[(0, 4)])),
            ("7.8,1,3,5-8,2", tasks(seven, &[(1, 3), (5, 8)])),
            ("7.1-6:2", tasks(seven, &[(1, 1), (3, 3), (5, 5)])),
            ("7.1-6:100", tasks(seven, &[(1, 1)])),
            ("7.2147483647", tasks(seven, &[(2_147_483_647, 2_147_483_647)])),
            ("7.2147483648", Err(SelectError::TooHigh)),
            ("7.1-2000000000:2", Err(SelectError::TooMany)),
            ("7.", Err(SelectError::Tasks)),
            (".7", Err(SelectError::Tasks)),
            ("all.7", Err(SelectError::Tasks)),
            ("7.1,8.2", Err(SelectError::Tasks)),
            ("7.3-1", Err(SelectError::Range)),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Target>(), expected, "{text:?}");
        }
        assert_eq!("7,8".parse::<Target>(), Ok(Target::Jobs(Jobs(vec![id(7), id(8)]))));
        assert_eq!("7".parse::<JobPart>(), Ok(JobPart { job: seven, tasks: None }));
        assert_eq!("last.2".parse::<JobPart>(), Ok(JobPart { job: JobSelector::Last, tasks: Some(vec![(2, 2)]) }));
        assert_eq!("7,8".parse::<JobPart>(), Err(SelectError::One));
        assert_eq!("8,1-6".parse::<TaskRanges>(), Ok(TaskRanges(vec![(1, 6), (8, 8)])));
        assert_eq!("7.1".parse::<TaskRanges>(), Err(SelectError::Numbers));
        assert_eq!("3-1".parse::<TaskRanges>(), Err(SelectError::Range));
    }

    #[test]
    fn one_job_is_known_by_the_way_it_is_written() {
        let jobs = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<Jobs>>();
        let targets = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<Target>>();
        for (line, expected) in
            [("7", true), ("last", true), ("all", false), ("7-7", false), ("7,8", false), ("7 8", false)]
        {
            assert_eq!((is_one(&jobs(line)), Target::is_one(&targets(line))), (expected, expected), "{line}");
        }
        assert!(Target::is_one(&targets("7.1-20")) && !Target::is_one(&targets("7.1 7.2")));
    }

    #[test]
    fn a_span_holds_its_steps() {
        let span = NumberSpan { first: 5, last: 20, step: 5 };
        let held: Vec<u64> = (0..30).filter(|number| span.contains(*number)).collect();
        assert_eq!(held, [5, 10, 15, 20]);
    }

    #[test]
    fn ranges_are_told_as_they_are_typed() {
        assert_eq!(told(&[(1, 3), (5, 5), (7, 70_000)]), "1-3,5,7-70000");
        assert_eq!(joined(&[1, 2, 3, 5, 7, u64::MAX]), [(1, 3), (5, 5), (7, 7), (u64::MAX, u64::MAX)]);
    }
}
