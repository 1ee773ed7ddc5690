//! The rules of a submission, each with its own text. They are the same for the command line, which checks before it
//! asks, and for the broker.

use crate::items::{self, ItemsError};
use crate::model::job::{ArrayError, JobSpec};
use crate::model::limits::WORK_BYTES_MAX;
use crate::model::limits::{
    FOREMAN_PROCS_MAX, ITEMS_BYTES_MAX, JOB_AFTER_MAX, JOB_KEY_BYTES_MAX, JOB_LABELS_MAX, JOB_NAME_BYTES_MAX,
    JOB_TAGS_MAX, JOB_UPLOADS_MAX, LABEL_BYTES_MAX, PRIORITY_MAX, TAG_BYTES_MAX,
};
use crate::placeholders::{self, FillError};
use crate::work::{self, WorkError};

/// The rule that a submission breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum SpecError {
    #[error(transparent)]
    Array(#[from] ArrayError),
    #[error("a job's name has at most {JOB_NAME_BYTES_MAX} bytes, and this one has {0}")]
    Name(usize),
    #[error("a job's key has 1 to {JOB_KEY_BYTES_MAX} bytes, and this one has {0}")]
    Key(usize),
    #[error("a task takes 1 to {FOREMAN_PROCS_MAX} slots, not {0}")]
    Slots(u16),
    #[error("a priority is 0 to {PRIORITY_MAX}, not {0}")]
    Priority(u8),
    #[error("at least 1 task must be allowed to run at a time")]
    MaxParallel,
    #[error("a time limit is at least 1 ms")]
    TimeLimit,
    #[error("a job starts after at most {JOB_AFTER_MAX} other jobs, not {0}")]
    After(usize),
    #[error("a job asks for at most {JOB_LABELS_MAX} labels, not {0}")]
    Labels(usize),
    #[error(
        "a label has a key of 1 to {LABEL_BYTES_MAX} bytes without `=` and a value of at most {LABEL_BYTES_MAX} bytes, both \
         without control characters; {0:?} does not"
    )]
    Label(String),
    #[error("a job asks for one value of a label, and this one asks for two of {0:?}")]
    LabelTwice(String),
    #[error("a job has at most {JOB_TAGS_MAX} tags, not {0}")]
    Tags(usize),
    #[error("a tag has 1 to {TAG_BYTES_MAX} bytes without control characters; {0:?} does not")]
    Tag(String),
    #[error("a job is given at most {JOB_UPLOADS_MAX} different files, not {0}")]
    Uploads(usize),
    #[error("a job has one item per task: {items} items, {tasks} tasks")]
    ItemCount { items: u32, tasks: u32 },
    #[error(transparent)]
    Items(#[from] ItemsError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// The rules that need no look at the command and inside the items.
pub fn check_numbers(spec: &JobSpec) -> Result<(), SpecError> {
    spec.numbers().check()?;
    let broken = |good: bool, error: SpecError| if good { Ok(()) } else { Err(error) };
    broken(spec.name.len() <= JOB_NAME_BYTES_MAX, SpecError::Name(spec.name.len()))?;
    if let Some(key) = &spec.key {
        broken((1..=JOB_KEY_BYTES_MAX).contains(&key.len()), SpecError::Key(key.len()))?;
    }
    broken((1..=FOREMAN_PROCS_MAX).contains(&spec.slots), SpecError::Slots(spec.slots))?;
    broken(spec.priority <= PRIORITY_MAX, SpecError::Priority(spec.priority))?;
    broken(spec.max_parallel != Some(0), SpecError::MaxParallel)?;
    broken(spec.time_limit_ms != Some(0), SpecError::TimeLimit)?;
    broken(spec.after.len() <= JOB_AFTER_MAX, SpecError::After(spec.after.len()))?;
    broken(spec.uploads.len() <= JOB_UPLOADS_MAX, SpecError::Uploads(spec.uploads.len()))?;
    broken(spec.work.len() <= WORK_BYTES_MAX, WorkError::TooLong.into())?;
    check_words(spec)?;
    if spec.items.is_empty() {
        return Ok(());
    }
    broken(spec.items.len() <= ITEMS_BYTES_MAX, ItemsError::TooLong.into())?;
    let items = items::count(&spec.items).ok_or(ItemsError::Malformed)?;
    broken(items == spec.array.count, SpecError::ItemCount { items, tasks: spec.array.count })
}

/// Checks labels and tags.
fn check_words(spec: &JobSpec) -> Result<(), SpecError> {
    if spec.labels.len() > JOB_LABELS_MAX {
        return Err(SpecError::Labels(spec.labels.len()));
    }
    for (at, (key, value)) in spec.labels.iter().enumerate() {
        if !is_label(key, value) {
            return Err(SpecError::Label(format!("{key}={value}")));
        }
        if spec.labels.iter().take(at).any(|(before, _)| before == key) {
            return Err(SpecError::LabelTwice(key.clone()));
        }
    }
    if spec.tags.len() > JOB_TAGS_MAX {
        return Err(SpecError::Tags(spec.tags.len()));
    }
    let is_tag = |tag: &&String| (1..=TAG_BYTES_MAX).contains(&tag.len()) && !tag.chars().any(char::is_control);
    match spec.tags.iter().find(|tag| !is_tag(tag)) {
        Some(tag) => Err(SpecError::Tag(tag.clone())),
        None => Ok(()),
    }
}

/// Whether that can be a label.
pub fn is_label(key: &str, value: &str) -> bool {
    let is_short = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.chars().any(char::is_control);
    !key.is_empty() && !key.contains('=') && is_short(key) && is_short(value)
}

/// All rules: every item can be read, and put in where its placeholder stands.
pub fn check(spec: &JobSpec) -> Result<(), SpecError> {
    check_numbers(spec)?;
    let work = work::decode(&spec.work)?;
    let shape = if spec.items.is_empty() { None } else { Some(items::check(&spec.items)?) };
    Ok(placeholders::check(&work, shape)?)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::model::archive::UploadId;
    use crate::model::job::{After, AfterWhen, Array, JobId, Work};

    fn spec() -> JobSpec {
        let work = Work { argv: vec!["run".to_owned(), "{}".to_owned()], ..Work::default() };
        JobSpec::new("sim", Array { first: 1, count: 2, step: 1 }, work::encode(&work).unwrap())
    }

    fn items(count: usize) -> Bytes {
        let mut items = items::Builder::new(1).unwrap();
        (0..count).for_each(|_| items.push(&["a"]).unwrap());
        items.finish()
    }

    /// Every rule has a text of its own, which names what breaks it.
    #[test]
    fn every_rule_says_which_it_is() {
        assert_eq!(check(&spec()), Ok(()));
        assert_eq!(check(&JobSpec { items: items(2), ..spec() }), Ok(()));
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let after = After { job: JobId(1), when: AfterWhen::Ok };
        let no_map = Bytes::from_static(b"no map");
        let odd = Work { argv: vec!["{x}".to_owned()], columns: vec!["y".to_owned()], ..Work::default() };
        let odd = work::encode(&odd).unwrap();
        let table = [
            (JobSpec { array: Array { first: 1, count: 0, step: 1 }, ..spec() }, "must not decrease"),
            (JobSpec { array: Array { first: 1, count: 10_000_001, step: 1 }, ..spec() }, "at most 10000000 tasks"),
            (JobSpec { parts: vec![Array::ONE; 2], ..spec() }, "rising order"),
            (JobSpec { name: "n".repeat(129), ..spec() }, "this one has 129"),
            (JobSpec { key: Some(String::new()), ..spec() }, "this one has 0"),
            (JobSpec { slots: 0, ..spec() }, "slots, not 0"),
            (JobSpec { priority: 10, ..spec() }, "0 to 9, not 10"),
            (JobSpec { max_parallel: Some(0), ..spec() }, "at a time"),
            (JobSpec { time_limit_ms: Some(0), ..spec() }, "time limit"),
            (JobSpec { after: vec![after; 17], ..spec() }, "16 other jobs, not 17"),
            (JobSpec { labels: vec![label("a", "b"); 17], ..spec() }, "16 labels, not 17"),
            (JobSpec { labels: vec![label("", "b")], ..spec() }, "\"=b\" does not"),
            (JobSpec { labels: vec![label("a", "b"), label("a", "c")], ..spec() }, "two of \"a\""),
            (JobSpec { tags: vec!["a".to_owned(); 17], ..spec() }, "16 tags, not 17"),
            (JobSpec { tags: vec!["a\n".to_owned()], ..spec() }, "\"a\\n\" does not"),
            (JobSpec { uploads: vec![UploadId([0; 32]); 65], ..spec() }, "64 different files, not 65"),
            (JobSpec { items: items(3), ..spec() }, "3 items, 2 tasks"),
            (JobSpec { items: no_map.clone(), ..spec() }, "not a valid block of items"),
            (JobSpec { work: vec![0; 65_537].into(), ..spec() }, "at most 65536 bytes"),
            (JobSpec { work: no_map, ..spec() }, "not a valid map of a command"),
            (JobSpec { work: odd, items: items(2), ..spec() }, "{x} is not a column"),
        ];
        let mut texts = std::collections::BTreeSet::new();
        for (spec, part) in table {
            let text = check(&spec).unwrap_err().to_string();
            assert!(text.contains(part), "{part}: {text}");
            assert!(texts.insert(text.clone()), "said of two rules: {text}");
        }
    }
}
