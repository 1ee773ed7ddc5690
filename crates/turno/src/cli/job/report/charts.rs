//! The drawings of the report. Words stand beside them as HTML, so that they keep their size on every screen; each drawing
//! has a sentence that tells what is to be seen, and its numbers in a table.

use std::time::Duration;

use turno_proto::model::job::TaskState;

use super::figures::{Counts, Durations, Figures, STATES, Timeline};
use super::html::Html;
use super::lanes::{LanePiece, Stretch, TimeSpan, WIDTH, stretches};
use super::page::task_state;
use crate::cli::progress::rate_text;
use crate::cli::time::short;
use crate::cli::words::count;

/// Rows of the Gantt chart. Of more slots, a row is a whole worker.
const ROWS_MAX: usize = 100;
/// Units from one row to the next.
const ROW: f64 = 9.0;
/// Tasks that can be pointed at, each by itself.
const POINTED_MAX: usize = 1_000;
/// Tasks in the table below the chart.
const LISTED_MAX: usize = 1_000;
/// Columns in a row that is a whole worker.
const SHADES: usize = 200;
/// Units of height of the other drawings.
const HEIGHT: f64 = 120.0;

fn caption(html: &mut Html, id: &'static str, title: &'static str, sentence: &str) {
    html.raw("<figure>\n<figcaption id=\"").raw(id).raw("\"><h2>").raw(title).raw("</h2><p>").text(sentence);
    html.raw("</p></figcaption>\n");
}

/// A drawing of that height that is as wide as there is room.
fn open_svg(html: &mut Html, caption: &'static str, height: f64) {
    html.raw("<svg role=\"img\" aria-labelledby=\"").raw(caption).raw("\" viewBox=\"0 0 ").number(WIDTH).raw(" ");
    html.number(height).raw("\" height=\"").number(height).raw("\" preserveAspectRatio=\"none\">");
}

fn rect(html: &mut Html, class: &'static str, x: f64, y: f64, width: f64, height: f64) {
    html.raw("<rect class=\"").raw(class).raw("\" x=\"").number(x).raw("\" y=\"").number(y).raw("\" width=\"");
    html.number(width).raw("\" height=\"").number(height).raw("\"/>");
}

const fn fill(state: TaskState) -> &'static str {
    match state {
        TaskState::Finished => "f1",
        TaskState::Failed => "f2",
        TaskState::Cancelled => "f3",
        TaskState::Running => "f4",
        TaskState::Waiting => "f5",
    }
}

fn legend(html: &mut Html, counts: &Counts) {
    html.raw("<ul class=\"legend\">");
    for state in STATES.into_iter().filter(|state| counts.of(*state) > 0) {
        let (class, sign, word) = task_state(state);
        html.raw("<li class=\"").raw(class).raw("\"><i></i><span>").raw(sign).raw(" ").raw(word).raw("</span></li>");
    }
    html.raw("</ul>\n");
}

#[expect(clippy::cast_precision_loss, reason = "places of a drawing")]
const fn float(number: u64) -> f64 {
    number as f64
}

fn lasting(ms: f64) -> String {
    short(Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or_default())
}

/// Text at the same distances below a drawing.
fn axis(html: &mut Html, words: &[String]) {
    html.raw("<div class=\"axis\" aria-hidden=\"true\">");
    for word in words {
        html.raw("<span>").text(word).raw("</span>");
    }
    html.raw("</div>\n");
}

/// The beginnings of tables.
fn open_table(html: &mut Html, summary: &'static str, heads: &[&'static str]) {
    html.raw("<details><summary>")
        .raw(summary)
        .raw("</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    html.raw(summary).raw("\"><table>\n<thead><tr>");
    for head in heads {
        html.raw("<th scope=\"col\">").raw(head).raw("</th>");
    }
    html.raw("</tr></thead>\n<tbody>\n");
}

fn close_table(html: &mut Html) {
    html.raw("</tbody></table></div></details>\n</figure>\n");
}

/// The states of tasks from the first number to the last.
pub(super) fn strip(html: &mut Html, figures: &Figures) {
    let all = figures.counts.all();
    let told: Vec<String> = STATES
        .into_iter()
        .filter(|state| figures.counts.of(*state) > 0)
        .map(|state| format!("{} {}", figures.counts.of(state), task_state(state).2))
        .collect();
    let columns = figures.strip.len() as u64;
    let wide = match all > columns {
        true => format!(
            " Each column stands for about {} tasks; a column with a failed task is always marked.",
            all.div_ceil(columns.max(1))
        ),
        false => String::new(),
    };
    caption(html, "strip", "Tasks by number", &format!("In order of task number: {}.{wide}", told.join(", ")));
    html.raw("<div class=\"chart\">");
    let height = 36.0;
    open_svg(html, "strip", height);
    let step = WIDTH / float(columns.max(1));
    let gap = if columns > 120 { 0.0 } else { (step * 0.12).min(2.0) };
    html.raw("<g class=\"crisp\">");
    for (column, counts) in (0..).zip(&figures.strip) {
        let mut y = 0.0;
        for (state, tall) in STATES.into_iter().zip(heights(counts, height)).filter(|(_, tall)| *tall > 0.0) {
            rect(html, fill(state), float(column) * step, y, step - gap, tall);
            y += tall;
        }
    }
    html.raw("</g>");
    html.raw("</svg></div>\n");
    legend(html, &figures.counts);
    open_table(html, "Show counts as a table", &["State", "Tasks"]);
    for state in STATES {
        html.raw("<tr><th scope=\"row\">").raw(task_state(state).2).raw("</th><td>").number(figures.counts.of(state));
        html.raw("</td></tr>\n");
    }
    close_table(html);
}

/// The heights of a column's states, in the order of [`STATES`]. One failed task among many is still seen.
fn heights(counts: &Counts, height: f64) -> [f64; 5] {
    let least = height / 12.0;
    let mut heights = counts.0.map(|count| height * float(count) / float(counts.all().max(1)));
    let failed = heights[1];
    if counts.of(TaskState::Failed) > 0 && failed < least {
        heights.iter_mut().for_each(|tall| *tall *= (height - least) / (height - failed));
        heights[1] = least;
    }
    heights
}

/// One row for each slot of each worker, from the first start to the last end.
pub(super) fn gantt(html: &mut Html, figures: &Figures, job: &str) {
    let Some(span) = figures.span else { return };
    let slots: usize = figures.timelines.iter().map(|timeline| timeline.lanes.len()).sum();
    let whole = slots > ROWS_MAX;
    let mut timelines: Vec<&Timeline> = figures.timelines.iter().collect();
    if timelines.len() > ROWS_MAX {
        timelines.sort_by_key(|timeline| std::cmp::Reverse(timeline.busy));
        timelines.truncate(ROWS_MAX);
    }
    let mut sentence = format!(
        "{} on {} of {} within {}.",
        count(figures.pieces.len() as u64, "task", "tasks"),
        count(slots as u64, "slot", "slots"),
        count(figures.timelines.len() as u64, "worker", "workers"),
        lasting(float(span.length()))
    );
    sentence += match whole {
        true => " One row per worker, because there are too many slots; the height shows how many were busy.",
        false => " One row per slot; very short tasks are merged; failed tasks are drawn taller.",
    };
    if timelines.len() < figures.timelines.len() {
        sentence += &format!(" Only the {} busiest workers are shown.", timelines.len());
    }
    caption(html, "gantt", "Timeline by worker", &sentence);
    html.raw("<div class=\"chart gantt\">\n");
    let pointed = figures.pieces.len() <= POINTED_MAX;
    for timeline in timelines {
        html.raw("<div class=\"timeline\"><div class=\"who mono\">").text(&timeline.name).raw("<small>");
        html.number(timeline.lanes.len()).raw(if timeline.lanes.len() == 1 { " slot, " } else { " slots, " });
        html.number(timeline.share(span).round()).raw(" % busy</small></div>");
        let rows = if whole { 2 } else { timeline.lanes.len().max(2) };
        open_svg(html, "gantt", float(rows as u64) * ROW);
        match (whole, pointed) {
            (true, _) => shades(html, timeline, span),
            (false, true) => pieces(html, timeline, span, job),
            (false, false) => paths(html, timeline, span),
        }
        html.raw("</svg></div>\n");
    }
    let quarter = |n: u64| lasting(float(span.length()) * float(n) / 4.0);
    axis(html, &[0, 1, 2, 3, 4].map(|n| if n == 0 { "0".to_owned() } else { quarter(n) }));
    html.raw("</div>\n");
    if !whole {
        legend(html, &figures.counts_of_started());
    }
    listing(html, figures, span, job);
}

/// The part of a row's height that a state takes: failures are seen without colour.
const fn band(state: TaskState) -> (f64, f64) {
    match state {
        TaskState::Failed => (0.5, ROW - 1.0),
        _ => (1.5, ROW - 3.0),
    }
}

/// At least wide enough to be seen, and a little less than its time, so that neighbours stay apart.
fn drawn(stretch: Stretch, state: TaskState) -> (f64, f64) {
    let least = if state == TaskState::Failed { 2.0 } else { 1.0 };
    let width = (stretch.width - 0.6).max(least);
    (stretch.x.min(WIDTH - width), width)
}

/// Each task by itself, with its name.
fn pieces(html: &mut Html, timeline: &Timeline, span: TimeSpan, job: &str) {
    for (row, lane) in (0..).zip(&timeline.lanes) {
        for piece in lane {
            let x = span.place(piece.start);
            let (x, width) = drawn(Stretch { x, width: span.place(piece.end) - x }, piece.state);
            let (top, tall) = band(piece.state);
            html.raw("<rect class=\"").raw(fill(piece.state)).raw("\" x=\"").number(x).raw("\" y=\"");
            html.number(float(row) * ROW + top).raw("\" width=\"").number(width).raw("\" height=\"").number(tall);
            html.raw("\"><title>")
                .text(job)
                .raw(".")
                .number(piece.task)
                .raw(" ")
                .raw(task_state(piece.state).2)
                .raw(", ");
            html.text(&lasting(float(piece.took()))).raw("</title></rect>");
        }
    }
}

/// All tasks of a state as one drawing, which takes a tenth of the bytes.
fn paths(html: &mut Html, timeline: &Timeline, span: TimeSpan) {
    for state in [TaskState::Finished, TaskState::Cancelled, TaskState::Running, TaskState::Failed] {
        if timeline.counts.of(state) == 0 {
            continue;
        }
        html.raw("<path class=\"").raw(fill(state)).raw("\" d=\"");
        let (top, tall) = band(state);
        for (row, lane) in (0..).zip(&timeline.lanes) {
            for stretch in stretches(lane, span, state) {
                let (x, width) = drawn(stretch, state);
                html.raw("M").number(x).raw(" ").number(float(row) * ROW + top).raw("h").number(width).raw("v");
                html.number(tall).raw("h").number(-width).raw("z");
            }
        }
        html.raw("\"/>");
    }
}

/// How many of a worker's slots were busy, over time.
fn shades(html: &mut Html, timeline: &Timeline, span: TimeSpan) {
    let mut busy = vec![0.0; SHADES];
    let columns = float(SHADES as u64);
    for piece in timeline.lanes.iter().flatten() {
        let (from, to) = (span.place(piece.start) * columns / WIDTH, span.place(piece.end) * columns / WIDTH);
        for (column, sum) in (0..).map(float).zip(&mut busy) {
            *sum += (to.min(column + 1.0) - from.max(column)).max(0.0);
        }
    }
    let most = float(timeline.lanes.len().max(1) as u64);
    html.raw("<path class=\"f1\" d=\"");
    for (column, sum) in (0..).map(float).zip(busy).filter(|(_, sum)| *sum > 0.0) {
        let tall = (ROW * 2.0 * sum / most).clamp(0.5, ROW * 2.0);
        let width = WIDTH / columns;
        html.raw("M").number(column * width).raw(" ").number(ROW * 2.0).raw("v").number(-tall).raw("h").number(width);
        html.raw("v").number(tall).raw("z");
    }
    html.raw("\"/>");
}

fn listing(html: &mut Html, figures: &Figures, span: TimeSpan, job: &str) {
    let heads = ["Task", "State", "Worker", "Started after", "Took"];
    open_table(html, "Show tasks as a table", &heads);
    let name = |piece: &LanePiece| figures.workers.get(piece.worker as usize).map_or("", String::as_str);
    for piece in figures.pieces.iter().take(LISTED_MAX) {
        html.raw("<tr><th scope=\"row\" class=\"mono\">").text(job).raw(".").number(piece.task).raw("</th><td>");
        html.raw(task_state(piece.state).2).raw("</td><td class=\"mono\">").text(name(piece)).raw("</td><td>");
        html.text(&lasting(float(piece.start - span.from))).raw("</td><td>").text(&lasting(float(piece.took())));
        html.raw("</td></tr>\n");
    }
    if figures.pieces.len() > LISTED_MAX {
        html.raw("<tr><td colspan=\"5\">and ").number(figures.pieces.len() - LISTED_MAX);
        html.raw(" more: <code>turno job tasks ").text(job).raw("</code></td></tr>\n");
    }
    close_table(html);
}

/// How long tasks took.
pub(super) fn histogram(html: &mut Html, figures: &Figures) {
    let Some(durations) = &figures.durations else { return };
    let Durations { p50, p90, most, .. } = *durations;
    let [p50_text, p90_text, most_text] = [p50, p90, most].map(|ms| lasting(float(ms)));
    let scale = if durations.powers { " Logarithmic scale: a few tasks took far longer than the rest." } else { "" };
    let sentence = format!("Median (p50) {p50_text}, 90th percentile (p90) {p90_text}, maximum {most_text}.{scale}");
    caption(html, "durations", "Task durations", &sentence);
    html.raw("<div class=\"chart\">");
    let highest = durations.bins.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    html.raw("<div class=\"axis top\" aria-hidden=\"true\"><span>")
        .text(&count(highest, "task", "tasks"))
        .raw("</span><span>dashed: p50 ");
    html.text(&p50_text).raw(", p90 ").text(&p90_text).raw("</span></div>\n");
    open_svg(html, "durations", HEIGHT);
    rect(html, "base", 0.0, HEIGHT - 1.0, WIDTH, 1.0);
    let step = WIDTH / float(durations.bins.len() as u64);
    for (bin, (_, tasks)) in (0..).zip(&durations.bins).filter(|(_, (_, tasks))| *tasks > 0) {
        let tall = (HEIGHT * float(*tasks) / float(highest)).max(1.5);
        rect(html, "f1", float(bin) * step + 1.0, HEIGHT - tall, step - 2.0, tall);
    }
    for ms in [p50, p90] {
        let x = durations.place(ms) * WIDTH;
        html.raw("<line class=\"mark\" x1=\"")
            .number(x)
            .raw("\" x2=\"")
            .number(x)
            .raw("\" y1=\"0\" y2=\"")
            .number(HEIGHT);
        html.raw("\"/>");
    }
    html.raw("</svg>\n");
    let ticks = [0, 6, 12, 18, 24].map(|edge| match edge {
        0 => lasting(durations.low),
        edge => lasting(durations.edges(edge - 1).1),
    });
    axis(html, &ticks);
    html.raw("</div>\n");
    open_table(html, "Show durations as a table", &["From", "To", "Tasks"]);
    for (bin, (_, tasks)) in durations.bins.iter().enumerate() {
        let (from, to) = durations.edges(bin);
        html.raw("<tr><td>").text(&lasting(from)).raw("</td><td>").text(&lasting(to)).raw("</td><td>").number(*tasks);
        html.raw("</td></tr>\n");
    }
    close_table(html);
}

/// How many tasks ended when.
pub(super) fn throughput(html: &mut Html, figures: &Figures) {
    let (Some(span), Some(_)) = (figures.span, &figures.durations) else { return };
    let steps = &figures.throughput;
    let step_ms = float(span.length()) / float(steps.len().max(1) as u64);
    let per_second = |count: u64| float(count) * 1_000.0 / step_ms;
    let highest = steps.iter().map(|(good, bad)| good + bad).max().unwrap_or(1).max(1);
    let all: u64 = steps.iter().map(|(good, bad)| good + bad).sum();
    let mean = float(all) * 1_000.0 / float(span.length());
    let sentence = format!(
        "{} ended: {} on average, {} at most, over {}.",
        count(all, "task", "tasks"),
        rate_text(mean),
        rate_text(per_second(highest)),
        lasting(step_ms)
    );
    caption(html, "throughput", "Throughput", &sentence);
    html.raw("<div class=\"chart\"><div class=\"axis top\" aria-hidden=\"true\"><span>")
        .text(&rate_text(per_second(highest)));
    html.raw("</span></div>\n");
    open_svg(html, "throughput", HEIGHT);
    rect(html, "base", 0.0, HEIGHT - 1.0, WIDTH, 1.0);
    let wide = WIDTH / float(steps.len().max(1) as u64);
    for (place, (good, bad)) in (0..).map(float).zip(steps).filter(|(_, (good, bad))| good + bad > 0) {
        let tall = |count: u64| HEIGHT * float(count) / float(highest);
        let (good, bad) = (tall(*good), tall(*bad));
        if good > 0.0 {
            rect(html, "f1", place * wide + 0.5, HEIGHT - good, wide - 1.0, good);
        }
        if bad > 0.0 {
            rect(html, "f2", place * wide + 0.5, HEIGHT - good - bad, wide - 1.0, bad.max(1.0));
        }
    }
    html.raw("</svg>\n");
    axis(
        html,
        &[0, 1, 2, 3, 4].map(|n| match n {
            0 => "0".to_owned(),
            n => lasting(float(span.length()) * float(n) / 4.0),
        }),
    );
    html.raw("</div>\n<ul class=\"legend\"><li class=\"finished\"><i></i><span>&#10003; finished</span></li>");
    if steps.iter().any(|(_, bad)| *bad > 0) {
        html.raw("<li class=\"failed\"><i></i><span>&#10007; failed or cancelled</span></li>");
    }
    html.raw("</ul>\n");
    open_table(html, "Show throughput as a table", &["From", "To", "Finished", "Failed or cancelled"]);
    for (place, (good, bad)) in (0..).map(float).zip(steps) {
        html.raw("<tr><td>").text(&lasting(place * step_ms)).raw("</td><td>").text(&lasting((place + 1.0) * step_ms));
        html.raw("</td><td>").number(*good).raw("</td><td>").number(*bad).raw("</td></tr>\n");
    }
    close_table(html);
}
