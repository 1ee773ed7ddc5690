//! The page as a whole: well-formed, true to the tasks, harmless whatever strangers said, and small.

use std::collections::BTreeSet;

use turno_proto::model::TaskId;
use turno_proto::model::job::{Array, JobId, JobSpec, JobState, TaskCounts, TaskState, TaskView, Work};
use turno_proto::work;

use super::*;
use crate::cli::job::tests::view;

const NOON: u64 = 1_794_744_000_000;

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn job(count: u32, state: JobState) -> JobView {
    let argv = ["./simulate", "--seed", "{}", "--title", "<b>bold</b> & co"].map(ToOwned::to_owned).to_vec();
    let work = Work { argv, cwd: "/data/<i>run</i>".to_owned(), ..Work::default() };
    let array = Array { first: 1, count, step: 1 };
    let spec = JobSpec { retries: 2, ..JobSpec::new("simulate", array, work::encode(&work).unwrap()) };
    JobView {
        name: "simulate".to_owned(),
        array: array.into(),
        tasks: count,
        state,
        counts: TaskCounts::default(),
        ended_at: state.is_end().then_some(Moment::from_unix_ms(NOON + 600_000)),
        spec: Some(Box::new(spec)),
        ..view(7)
    }
}

/// Tasks as three workers of different sizes would have done them: each slot takes the next when it is free.
fn tasks(count: u32, slots: [usize; 3]) -> Vec<TaskView> {
    let mut dice = Dice(88_172_645_463_325_252);
    // When each slot is free, and whose it is.
    let mut free: BTreeSet<(u64, usize, usize)> = BTreeSet::new();
    for (worker, slots) in slots.into_iter().enumerate() {
        free.extend((0..slots).map(|slot| (NOON + 250, worker, slot)));
    }
    let mut told = Vec::new();
    for task in 1..=count {
        let (start, worker, slot) = free.pop_first().unwrap();
        let took = 800 + dice.roll(900) + dice.roll(900) + if dice.roll(50) == 0 { dice.roll(6_000) } else { 0 };
        let end = start + took;
        free.insert((end + dice.roll(20), worker, slot));
        let failed = dice.roll(40) == 0;
        let status = match dice.roll(4) {
            0 => "killed by signal 9".to_owned(),
            _ => format!("exit 3: cannot open input-{task}.dat: No such file or directory"),
        };
        let state = if failed { TaskState::Failed } else { TaskState::Finished };
        told.push(TaskView {
            worker: Some(format!("node{}.cluster", worker + 1)),
            started_at: Some(Moment::from_unix_ms(start)),
            ended_at: Some(Moment::from_unix_ms(end)),
            exit_code: (!status.starts_with("killed")).then_some(if failed { 3 } else { 0 }),
            signal: status.starts_with("killed").then_some(9),
            status: failed.then_some(status),
            ..TaskView::new(TaskId { job: JobId(7), task }, state, 1)
        });
    }
    told
}

fn figures_of(view: &JobView, tasks: &[TaskView]) -> Figures {
    let mut reader = TaskReader::new(view, NOON + 30_000);
    tasks.iter().for_each(|task| reader.add(task));
    reader.finish()
}

fn page_of(view: &JobView, tasks: &[TaskView]) -> String {
    let figures = figures_of(view, tasks);
    page::page(&PageContent { job: view, figures: &figures, written_at: Moment::from_unix_ms(NOON + 600_000) })
}

/// Elements that are never closed.
const VOID: [&str; 1] = ["!DOCTYPE"];

/// The names of elements, after a look that each is closed in its turn and no attribute is open.
fn elements(page: &str) -> Vec<String> {
    let (mut names, mut open) = (Vec::new(), Vec::new());
    let (before, style) = page.split_once("<style>").expect("one style");
    let (_, after) = style.split_once("</style>").expect("the style ends");
    for part in format!("{before}{after}").split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("an open tag: {part}"));
        assert!(!text.contains('>'), "a stray sign: {part}");
        assert!(tag.matches('"').count().is_multiple_of(2), "an open attribute: {tag}");
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap_or_default().to_owned();
        match tag {
            tag if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "closes what is open"),
            tag if tag.ends_with('/') || VOID.contains(&name.as_str()) => names.push(name),
            _ => {
                names.push(name.clone());
                open.push(name);
            }
        }
    }
    assert_eq!(open, Vec::<String>::new(), "all is closed");
    names
}

/// How often each word stands in the page as text.
fn times(page: &str, word: &str) -> usize {
    page.matches(word).count()
}

/// One page with all its parts, whose numbers are those of the tasks.
#[test]
fn a_page_tells_the_tasks_as_they_are() {
    for (count, slots) in [(1, [1, 1, 1]), (40, [2, 4, 2]), (2_500, [8, 16, 32])] {
        let (view, tasks) = (job(count, JobState::Failed), tasks(count, slots));
        let page = page_of(&view, &tasks);
        let names = elements(&page);
        assert_eq!(names.iter().filter(|name| *name == "h1").count(), 1);
        assert!(
            !names.iter().any(|name| ["script", "img", "link", "iframe", "a"].contains(&name.as_str())),
            "{names:?}"
        );
        assert!(
            !page.contains("http://") && !page.contains("https://") && !page.contains("url("),
            "needs nothing else"
        );
        let failed = tasks.iter().filter(|task| task.state == TaskState::Failed).count() as u64;
        let figures = figures_of(&view, &tasks);
        assert_eq!((figures.counts.all(), figures.counts.of(TaskState::Failed)), (count.into(), failed));
        let tile = format!("&#10003; {}</b><span>finished", u64::from(count) - failed);
        assert_eq!(times(&page, &tile), 1, "{tile}");
        assert_eq!(figures.failures.groups.iter().map(|group| group.count).sum::<u64>(), failed);
        assert_eq!(times(&page, "Failures</h2>"), usize::from(failed > 0));
        assert_eq!(figures.strip.iter().map(figures::Counts::all).sum::<u64>(), u64::from(count));
        let used: usize = figures.timelines.iter().map(|timeline| timeline.lanes.len()).sum();
        assert_eq!(used, slots.iter().sum::<usize>().min(count as usize), "as many rows as slots");
        let ended: u64 = figures.throughput.iter().map(|(good, bad)| good + bad).sum();
        assert_eq!(ended, u64::from(count));
    }
}

/// A task that runs is drawn up to now, one that waits is only counted, and nothing at all is a page too.
#[test]
fn a_job_that_goes_on_is_told_as_far_as_it_is() {
    let mut few = tasks(4, [2, 1, 1]);
    few[2] = TaskView { state: TaskState::Running, ended_at: None, exit_code: None, ..few[2].clone() };
    few[3] = TaskView { state: TaskState::Waiting, worker: None, started_at: None, ended_at: None, ..few[3].clone() };
    let view = job(4, JobState::Running);
    let figures = figures_of(&view, &few);
    assert_eq!((figures.counts.of(TaskState::Running), figures.counts.of(TaskState::Waiting)), (1, 1));
    assert_eq!(figures.span.map(|span| span.to), Some(NOON + 30_000), "now");
    assert!(figures.durations.is_none(), "what runs has no duration yet");
    elements(&page_of(&view, &few));
    let page = page_of(&job(4, JobState::Waiting), &[]);
    elements(&page);
    assert!(!page.contains("Who did what when") && page.contains("Tasks by number"));
}

/// Names, commands and statuses come from strangers.
#[test]
fn whatever_strangers_say_is_text() {
    let hostile = "</title><script>alert(1)</script>\"'><img src=x onerror=y> & \u{0}\x1b[2J\u{202e}";
    let argv = vec![hostile.to_owned()];
    let env = vec![(hostile.to_owned(), hostile.to_owned())];
    let work = work::encode(&Work { argv, cwd: hostile.to_owned(), env, ..Work::default() }).unwrap();
    let view = job(20, JobState::Failed);
    let spec = JobSpec { key: Some(hostile.to_owned()), ..JobSpec::new(hostile, view.numbers().array, work) };
    let view = JobView { name: hostile.to_owned(), spec: Some(Box::new(spec)), ..view };
    let tasks: Vec<TaskView> = tasks(20, [2, 2, 2])
        .into_iter()
        .map(|task| TaskView {
            state: TaskState::Failed,
            worker: Some(format!("{hostile}{}", task.task % 2)),
            status: Some(hostile.to_owned()),
            ..task
        })
        .collect();
    let page = page_of(&view, &tasks);
    let usual = elements(&page_of(&job(20, JobState::Failed), &self::tasks(20, [2, 2, 2])));
    let names = elements(&page);
    for name in names {
        assert!(usual.contains(&name) || name == "section", "{name}");
    }
    assert!(times(&page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;") > 5, "it is shown");
    assert!(!page.contains(['\0', '\x1b', '\u{202e}']) && page.contains(r"\x00\x1b[2J\u{202e}"), "{page}");
}

/// However many tasks there are, the page can be sent by mail.
#[test]
fn a_page_stays_small() {
    let bound = 2_000_000;
    for slots in [[8, 16, 32], [1, 1, 1], [64, 128, 500]] {
        let page = page_of(&job(100_000, JobState::Failed), &tasks(100_000, slots));
        elements(&page);
        assert!(page.len() < bound, "{} bytes with {slots:?}", page.len());
    }
    // As many rows as are drawn, each with as many gaps as can be seen.
    let worst: Vec<TaskView> = (0..100_000)
        .map(|n| TaskView {
            task: n + 1,
            worker: Some(format!("w{}", n % 100)),
            started_at: Some(Moment::from_unix_ms(NOON + u64::from(n / 100) * 2_000)),
            ended_at: Some(Moment::from_unix_ms(NOON + u64::from(n / 100) * 2_000 + u64::from(n % 3) * 400)),
            state: if n / 100 % 2 == 0 { TaskState::Finished } else { TaskState::Failed },
            status: Some(format!("exit 3: {}", "words ".repeat(40))),
            ..tasks(1, [1, 1, 1])[0].clone()
        })
        .collect();
    let page = page_of(&job(100_000, JobState::Failed), &worst);
    assert!(page.len() < bound, "{} bytes", page.len());
}
