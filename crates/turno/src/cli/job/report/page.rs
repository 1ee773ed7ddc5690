//! The layout of the report page. It needs nothing but itself: no script, no font, no network.

use std::time::Duration;

use turno_proto::model::Moment;
use turno_proto::model::job::{JobState, JobView, SpecView, TaskState};

use super::charts;
use super::figures::{Figures, STATES};
use super::html::Html;
use crate::cli::job::text;
use crate::cli::schema::failures::FailuresBody;
use crate::cli::time::short;
use crate::cli::version::VERSION;
use crate::cli::words::count;

/// The contents of the page.
pub(super) struct PageContent<'a> {
    pub(super) job: &'a JobView,
    pub(super) figures: &'a Figures,
    /// When it is written.
    pub(super) written_at: Moment,
}

/// Workers in the table of them. Of more, those that did most.
const WORKERS_MAX: usize = 200;

pub(super) fn page(told: &PageContent<'_>) -> String {
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    // Should a stranger's word ever be more than text: nothing is loaded, run or sent.
    html.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n",
    );
    let id = told.job.id.to_string();
    html.raw("<title>Job ").text(&id).raw(" (").text(&told.job.name).raw(") - Turno</title>\n");
    html.raw("<style>\n").raw(include_str!("style.css")).raw("</style>\n</head>\n<body>\n");
    header(&mut html, told);
    html.raw("<main>\n");
    charts::strip(&mut html, told.figures);
    failures(&mut html, &told.figures.failures, &id);
    charts::gantt(&mut html, told.figures, &id);
    charts::histogram(&mut html, told.figures);
    charts::throughput(&mut html, told.figures);
    workers(&mut html, told.figures);
    html.raw("</main>\n<footer>Written by turno ").text(VERSION).raw(" on ").text(&plain(told.written_at));
    html.raw(". Times are broker times; for retried tasks, those of the latest attempt.");
    html.raw("</footer>\n</body>\n</html>\n");
    html.finish()
}

fn header(html: &mut Html, told: &PageContent<'_>) {
    let (row, figures) = (told.job, told.figures);
    let (class, sign) = job_state(row.state);
    html.raw("<header>\n<h1><span class=\"badge ")
        .raw(class)
        .raw("\">")
        .raw(sign)
        .raw(" ")
        .raw(row.state.word())
        .raw("</span>");
    html.text(&row.name).raw("</h1>\n<p class=\"lead\">Job ").text(&row.id.to_string()).raw(", ");
    html.text(&count(row.tasks.into(), "task", "tasks")).raw(if row.tasks == 1 { "" } else { ", numbers " });
    if row.tasks != 1 {
        html.text(&row.array.to_string());
    }
    html.raw("</p>\n");
    html.raw("<ul class=\"tiles\">\n");
    for state in STATES {
        let number = figures.counts.of(state);
        if number > 0 {
            let (class, sign, word) = task_state(state);
            html.raw("<li><b class=\"").raw(class).raw("\">").raw(sign).raw(" ").number(number).raw("</b><span>");
            html.raw(word).raw("</span></li>\n");
        }
    }
    let mut tile = |number: String, words: &'static str| {
        html.raw("<li><b>").text(&number).raw("</b><span>").raw(words).raw("</span></li>\n");
    };
    if let Some(span) = figures.span {
        tile(short(Duration::from_millis(span.length())), "wall time");
        let lanes: usize = figures.timelines.iter().map(|timeline| timeline.lanes.len()).sum();
        let busy: f64 =
            figures.timelines.iter().map(|timeline| timeline.share(span) * as_float(timeline.lanes.len())).sum();
        tile(lanes.to_string(), if lanes == 1 { "slot used" } else { "slots used" });
        tile(format!("{:.0} %", busy / as_float(lanes.max(1))), "slot utilisation");
    }
    if let Some(durations) = &figures.durations {
        tile(short(Duration::from_millis(durations.p50)), "median task duration");
    }
    html.raw("</ul>\n<dl>\n");
    for (name, value) in facts(told) {
        html.raw("<dt>").text(&capital(name)).raw("</dt><dd>");
        match name {
            "command" | "shell" => html.raw("<code>").text(&value).raw("</code>"),
            _ => html.text(&value),
        };
        html.raw("</dd>\n");
    }
    html.raw("</dl>\n</header>\n");
}

#[expect(clippy::cast_precision_loss, reason = "a number of slots")]
fn as_float(number: usize) -> f64 {
    number as f64
}

fn facts(told: &PageContent<'_>) -> Vec<(&'static str, String)> {
    let row = told.job;
    let mut facts = vec![("submitted", plain(row.submitted_at))];
    facts.extend(row.started_at.map(|moment| ("started", plain(moment))));
    facts.extend(row.ended_at.map(|moment| ("ended", plain(moment))));
    facts.extend(row.because.as_deref().map(|because| ("because", because.to_string())));
    facts.extend(row.spec.as_deref().iter().flat_map(|spec| text::asked_for(&SpecView::from(*spec))));
    facts.push(("slots", format!("{} a task", row.slots)));
    facts
}

/// With a capital letter.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// `2026-11-15 12:00:00 UTC`
fn plain(moment: Moment) -> String {
    moment.timestamp().strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Class and sign; the word stands beside them.
const fn job_state(state: JobState) -> (&'static str, &'static str) {
    let sign = match state {
        JobState::Waiting => "&#8943;",
        JobState::Running => "&#9654;",
        JobState::Held => "&#10073;&#10073;",
        JobState::Finished => "&#10003;",
        JobState::Failed => "&#10007;",
        JobState::Cancelled => "&#8856;",
    };
    (state.word(), sign)
}

/// Class, sign and word: colour never stands alone.
pub(super) const fn task_state(state: TaskState) -> (&'static str, &'static str, &'static str) {
    match state {
        TaskState::Waiting => ("waiting", "&#8943;", "waiting"),
        TaskState::Running => ("running", "&#9654;", "running"),
        TaskState::Finished => ("finished", "&#10003;", "finished"),
        TaskState::Failed => ("failed", "&#10007;", "failed"),
        TaskState::Cancelled => ("cancelled", "&#8856;", "cancelled"),
    }
}

fn failures(html: &mut Html, failures: &FailuresBody, job: &str) {
    if failures.groups.is_empty() && failures.others == 0 {
        return;
    }
    html.raw("<section>\n<h2>Failures</h2>\n<p class=\"lead\">Grouped by failure; # replaces numbers ");
    html.raw("that differ. <code>turno job logs ").text(job).raw(" --failed</code> shows their output, <code>");
    html.raw("turno job retry ").text(job).raw(" --failed</code> retries them.</p>\n");
    html.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Failures\"><table>\n<thead><tr>");
    html.raw("<th scope=\"col\" class=\"n\">Tasks</th><th scope=\"col\">Failure</th><th scope=\"col\">Task numbers</th></tr></thead>\n<tbody>\n");
    for group in &failures.groups {
        html.raw("<tr><td class=\"n\">").number(group.count).raw("</td><td class=\"words mono\">").text(&group.text);
        html.raw("</td><td class=\"mono\">").text(&group.tasks.replace(',', ", "));
        html.raw(if group.more { ", &#8230;" } else { "" }).raw("</td></tr>\n");
    }
    if failures.others > 0 {
        html.raw("<tr><td class=\"n\">").number(failures.others).raw("</td><td>others</td><td></td></tr>\n");
    }
    html.raw("</tbody></table></div>\n</section>\n");
}

fn workers(html: &mut Html, figures: &Figures) {
    let Some(span) = figures.span else { return };
    let mut timelines: Vec<_> = figures.timelines.iter().collect();
    if timelines.len() > WORKERS_MAX {
        timelines.sort_by_key(|timeline| std::cmp::Reverse(timeline.busy));
        timelines.truncate(WORKERS_MAX);
    }
    html.raw("<section>\n<h2>Workers</h2>\n");
    if timelines.len() < figures.timelines.len() {
        html.raw("<p class=\"lead\">The ").number(timelines.len()).raw(" busiest of ").number(figures.timelines.len());
        html.raw(".</p>\n");
    }
    html.raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Workers\"><table>\n<thead><tr>");
    html.raw("<th scope=\"col\">Worker</th><th scope=\"col\" class=\"n\">Slots used</th><th scope=\"col\" class=\"n\">Tasks</th>");
    html.raw("<th scope=\"col\" class=\"n\">Finished</th><th scope=\"col\" class=\"n\">Failed</th>");
    html.raw("<th scope=\"col\" class=\"n\">Total task time</th><th scope=\"col\" class=\"n\">Mean task time</th>");
    html.raw("<th scope=\"col\" class=\"n\">Busy</th></tr></thead>\n<tbody>\n");
    for timeline in timelines {
        let tasks = timeline.counts.all();
        html.raw("<tr><th scope=\"row\" class=\"mono\">").text(&timeline.name).raw("</th><td class=\"n\">");
        html.number(timeline.lanes.len()).raw("</td><td class=\"n\">").number(tasks).raw("</td><td class=\"n\">");
        html.number(timeline.counts.of(TaskState::Finished)).raw("</td><td class=\"n\">");
        html.number(timeline.counts.of(TaskState::Failed)).raw("</td><td class=\"n\">");
        html.text(&short(Duration::from_millis(timeline.busy))).raw("</td><td class=\"n\">");
        html.text(&short(Duration::from_millis(timeline.busy / tasks.max(1)))).raw("</td><td class=\"n\">");
        html.number(timeline.share(span).round()).raw(" %</td></tr>\n");
    }
    html.raw("</tbody></table></div>\n</section>\n");
}
