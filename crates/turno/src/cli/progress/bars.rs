//! Progress bars for a terminal: jobs and tasks, each in one line of at most the terminal's width.

use super::meter::{JobCounts, Meter, TaskSums, eta_text, percent, rate_text};
use crate::cli::paint::Paint;
use crate::cli::shown::escaped;
use crate::cli::width;

/// Columns of a bar between its brackets, where there is room, and where there is little.
const BAR_LONG: usize = 30;
const BAR_SHORT: usize = 10;

/// Something behind a bar. What stands for less goes first when there is no room.
struct Word {
    text: String,
    worth: u8,
    bad: bool,
}

/// The highest weight: this word always stays.
const MUST: u8 = 9;

/// One bar and the words behind it.
struct BarLine {
    label: &'static str,
    part: u64,
    all: u64,
    words: Vec<Word>,
}

/// The lines, and a third one if nothing runs.
pub(super) fn lines(meter: &Meter, columns: usize, paint: Paint) -> Vec<String> {
    // The last column stays free: some terminals begin a new line there.
    let columns = columns.saturating_sub(1);
    let mut both = [jobs(&meter.jobs), tasks(meter)];
    let figures = both.each_ref().map(|line| format!("{}/{}", line.part, line.all));
    let figure_width = figures.iter().map(String::len).max().unwrap_or_default();
    // Label, brackets, figures, percent, and the blanks between them.
    let around = 5 + 2 + 2 + 2 + figure_width + 2 + 4;
    let widest = both.iter().map(|line| words_width(&line.words)).max().unwrap_or_default();
    let bar = columns.saturating_sub(around + widest).clamp(BAR_SHORT, BAR_LONG);
    let mut shown: Vec<String> = Vec::new();
    for (line, figure) in both.iter_mut().zip(&figures) {
        fit(&mut line.words, columns.saturating_sub(around + bar));
        let plain =
            format!("{:<5}  [{}]  {figure:>figure_width$}  {:>3}%", line.label, drawn(line, bar), line.percent());
        let start = width::head(&plain, columns);
        let words: String = line.words.iter().map(|word| format!("  {}", painted(word, paint))).collect();
        shown.push(format!("{start}{words}"));
    }
    shown.extend(meter.because.iter().map(|because| paint.dim(width::head(&escaped(because), columns))));
    shown
}

impl BarLine {
    const fn percent(&self) -> u64 {
        percent(self.part, self.all)
    }
}

fn jobs(counts: &JobCounts) -> BarLine {
    let words = [
        (counts.waiting, "waiting", 3),
        (counts.running, "running", 4),
        (counts.held, "held", 5),
        (counts.finished, "finished", 2),
        (counts.failed, "failed", 8),
        (counts.cancelled, "cancelled", 1),
    ];
    BarLine { label: "jobs", part: counts.ended(), all: counts.all(), words: counted(&words) }
}

fn tasks(meter: &Meter) -> BarLine {
    let TaskSums { waiting, running, finished, failed, cancelled } = meter.tasks;
    let mut words = counted(&[
        (waiting, "waiting", 2),
        (running, "running", 5),
        (finished, "finished", 3),
        (failed, "failed", 8),
        (cancelled, "cancelled", 1),
    ]);
    words.extend(meter.rate().map(|rate| Word { text: rate_text(rate), worth: 4, bad: false }));
    words.extend(meter.eta().map(|eta| Word { text: eta_text(eta), worth: MUST, bad: false }));
    BarLine { label: "tasks", part: meter.tasks.ended(), all: meter.tasks.all(), words }
}

fn counted(table: &[(u64, &str, u8)]) -> Vec<Word> {
    let there = table.iter().filter(|(count, ..)| *count > 0);
    there
        .map(|(count, name, worth)| Word { text: format!("{count} {name}"), worth: *worth, bad: *name == "failed" })
        .collect()
}

/// Columns that words take, with the blanks before each.
fn words_width(words: &[Word]) -> usize {
    words.iter().map(|word| 2 + word.text.len()).sum()
}

/// Leaves out what stands for least until the rest has room.
fn fit(words: &mut Vec<Word>, room: usize) {
    while words_width(words) > room {
        let Some((least, _)) = words.iter().enumerate().min_by_key(|(_, word)| word.worth) else { return };
        words.remove(least);
    }
}

/// `=====>    `: full when all have ended and not before.
fn drawn(line: &BarLine, width: usize) -> String {
    let full = usize::try_from(u128::from(line.part) * width as u128 / u128::from(line.all.max(1))).unwrap_or(width);
    let full = if line.all == 0 { width } else { full.min(width) };
    let tip = usize::from(full < width);
    format!("{}{}{}", "=".repeat(full), ">".repeat(tip), " ".repeat(width - full - tip))
}

fn painted(word: &Word, paint: Paint) -> String {
    if word.bad { paint.bad(&word.text) } else { word.text.clone() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use turno_proto::model::job::{JobReason, JobState, JobView};
    use turno_proto::model::view::Because;

    use super::*;
    use crate::cli::progress::meter::tests::job;

    /// Three jobs after 10 seconds at 131 tasks a second.
    fn meter() -> Meter {
        let mut meter = Meter::default();
        for (seconds, ended) in [(0, 4_000), (10, 5_310)] {
            let running = job(7, JobState::Running, [9_900 - ended, 24, ended, 12]);
            let views = [job(5, JobState::Finished, [0, 0, 40, 0]), job(6, JobState::Held, [10, 0, 0, 0]), running];
            meter.look(Duration::from_secs(seconds), &views);
        }
        meter
    }

    fn shown(meter: &Meter, width: usize) -> String {
        lines(meter, width, Paint::plain()).join("\n")
    }

    /// U28: two bars, with counts by state, a rate and an ETA.
    #[test]
    fn bars_have_as_much_to_tell_as_there_is_room() {
        let meter = meter();
        let table = [
            (
                140,
                "jobs   [==========>                   ]        1/3   33%  1 running  1 held  1 finished\n\
                 tasks  [================>             ]  5362/9986   53%  4600 waiting  24 running  5350 finished  \
                 12 failed  131/s  ETA 36s",
            ),
            (
                110,
                "jobs   [=====>         ]        1/3   33%  1 running  1 held  1 finished\n\
                 tasks  [========>      ]  5362/9986   53%  4600 waiting  24 running  5350 finished  \
                 12 failed  131/s  ETA 36s",
            ),
            (
                80,
                "jobs   [===>      ]        1/3   33%  1 running  1 held  1 finished\n\
                 tasks  [=====>    ]  5362/9986   53%  24 running  12 failed  131/s  ETA 36s",
            ),
            (
                62,
                "jobs   [===>      ]        1/3   33%  1 running  1 held\n\
                 tasks  [=====>    ]  5362/9986   53%  12 failed  ETA 36s",
            ),
            (40, "jobs   [===>      ]        1/3   33%\ntasks  [=====>    ]  5362/9986   53%"),
            (20, "jobs   [===>      ]\ntasks  [=====>    ]"),
            (0, "\n"),
        ];
        for (width, expected) in table {
            assert_eq!(shown(&meter, width), expected, "{width} columns");
        }
        for width in 0..200 {
            let fits = lines(&meter, width, Paint::plain()).iter().all(|line| line.len() < width.max(1));
            assert!(fits, "{width} columns");
        }
    }

    #[test]
    fn a_third_line_says_why_nothing_runs() {
        let waiting =
            JobView { because: Some(Because(JobReason::NoWorker)), ..job(8, JobState::Waiting, [3, 0, 0, 0]) };
        let mut meter = Meter::default();
        meter.look(Duration::ZERO, &[waiting]);
        assert_eq!(
            shown(&meter, 64),
            "jobs   [>                             ]  0/1    0%  1 waiting\ntasks  [>                             \
                 ]  0/3    0%  3 waiting\njob 8 waits: no job worker is connected"
        );
        assert_eq!(shown(&meter, 13).lines().last(), Some("job 8 waits:"));
    }

    /// Labels in the reason are a submitter's words.
    #[test]
    fn a_reason_cannot_leave_its_line() {
        let mut meter = meter();
        meter.because = Some("no worker has k=\x1b]52;c;aGk=\x07\u{202e}\nv".to_owned());
        let last = lines(&meter, 80, Paint::plain()).pop();
        assert_eq!(last.as_deref(), Some(r"no worker has k=\x1b]52;c;aGk=\x07\u{202e}\nv"));
    }

    #[test]
    fn a_bar_is_full_when_all_have_ended_and_not_before() {
        let bar = |part, all| drawn(&BarLine { label: "", part, all, words: Vec::new() }, 10);
        let bars = [(0, 7), (1, 10), (9_999, 10_000), (7, 7), (0, 0), (u64::MAX, u64::MAX)];
        assert_eq!(
            bars.map(|(part, all)| bar(part, all)),
            [">         ", "=>        ", "=========>", "==========", "==========", "=========="]
        );
    }

    #[test]
    fn what_failed_is_seen() {
        let mut meter = Meter::default();
        meter.look(Duration::ZERO, &[job(7, JobState::Failed, [0, 0, 0, 2])]);
        let painted = lines(&meter, 80, Paint::coloured());
        assert!(painted.iter().all(|line| line.contains("\x1b[1;31m")), "{painted:?}");
    }
}
