//! `cargo xtask bench chart`: figures in files become drawings and tables in docs/explanation/performance.md, so that nobody types
//! one.

mod bars;
mod lines;
mod page;
mod svg;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::budget::{self, Budget};
use crate::growth::figures::Growth;
use crate::overload::figures::Overload;
use crate::report::{LeftOut, Report, WorkResult};
use crate::spread::digits;
use crate::system::System;
use crate::table;
use crate::works::Work;

const PAGE: &str = "performance.md";
const DRAWINGS: &str = "performance";

#[derive(Args, Debug)]
pub(crate) struct ChartOptions {
    /// A report to draw; repeat for more
    #[arg(long = "from", value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Where performance.md is
    #[arg(long, default_value = "docs/explanation")]
    docs: PathBuf,
}

/// One section of the page, and the drawings it shows by their files.
struct Section {
    name: &'static str,
    text: String,
    drawings: Vec<(String, String)>,
}

/// Reads reports of works, growth and overload, told apart by what they hold.
pub(crate) fn run(options: &ChartOptions) -> Result<()> {
    let ChartOptions { files, docs } = options;
    let path = docs.join(PAGE);
    let mut text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = docs.join(DRAWINGS);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for file in files {
        let report = fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let Section { name, text: section, drawings } = section(&report).with_context(|| file.clone())?;
        text = page::fill(&text, name, &section)?;
        for (drawing, svg) in drawings {
            write(&folder.join(drawing), &svg)?;
        }
    }
    write(&path, &text)?;
    println!("wrote {} and its drawings", path.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn section(report: &str) -> Result<Section> {
    let value: Value = serde_json::from_str(report).context("no JSON")?;
    if value.get("works").is_some() {
        Ok(works(&serde_json::from_value(value)?))
    } else if value.get("curves").is_some() {
        Ok(growth(&serde_json::from_value(value)?))
    } else if value.get("storms").is_some() {
        Ok(overload(&serde_json::from_value(value)?))
    } else {
        bail!("no report of `cargo xtask bench`")
    }
}

fn works(report: &Report) -> Section {
    let mut text = format!("Measured {}; medians of {} rounds, of memory one.\n\n", report.head, report.runs);
    let systems = systems(report);
    text += &format!("| work | figure | Turno must reach | {} |\n", systems.join(" | "));
    text += &format!("|---|---|---|{}\n", "---:|".repeat(systems.len()));
    let (mut drawings, mut shown) = (Vec::new(), String::new());
    for work in Work::ALL {
        let Some(result) = report.works.iter().find(|result| result.work == work.name()) else { continue };
        for budget in budget::of(work) {
            if result.systems.iter().all(|one| (budget.of)(one).is_none()) {
                continue;
            }
            text += &row(work, budget, result, &systems);
            let Some(chart) = &budget.chart else { continue };
            let Some(svg) = bars::draw(budget, chart, result) else { continue };
            let file = format!("{}-{}.svg", work.name().to_lowercase(), chart.key);
            shown += &format!("\n![{}]({DRAWINGS}/{file})\n", chart.title);
            drawings.push((file, svg));
        }
    }
    for line in notes(report) {
        text += &format!("\n{line}\n");
    }
    Section { name: "works", text: text + &shown, drawings }
}

/// All that were measured beside the relay, Turno first.
fn systems(report: &Report) -> Vec<&'static str> {
    let is_there = |system: &System| {
        let all = report.works.iter().flat_map(|work| &work.systems);
        *system != System::Relay && all.into_iter().any(|one| one.name == system.name())
    };
    System::ALL.iter().filter(|system| is_there(system)).map(|system| system.name()).collect()
}

fn row(work: Work, budget: &Budget, result: &WorkResult, systems: &[&str]) -> String {
    let cell = |name: &&str| {
        let one = result.systems.iter().find(|one| one.name == *name);
        match one.and_then(budget.of) {
            Some(spread) if *name == System::Turno.name() => format!("**{}**", digits(spread.median)),
            Some(spread) => digits(spread.median),
            None => "–".to_owned(),
        }
    };
    let cells: Vec<String> = systems.iter().map(cell).collect();
    format!("| {} | {} | {} | {} |\n", work.name(), budget.figure, budget.bound, cells.join(" | "))
}

/// Notes for readers of the figures.
fn notes(report: &Report) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    let mut notes = Vec::new();
    for work in &report.works {
        for one in &work.systems {
            let version = format!("{} {}", one.name, one.version);
            if System::PEERS.iter().any(|peer| peer.name() == one.name) && !versions.contains(&version) {
                versions.push(version);
            }
            notes.extend(
                one.failure.iter().map(|failure| format!("{} broke off in {}, {failure}.", one.name, work.work)),
            );
        }
    }
    let durable = report.works.iter().flat_map(|work| &work.systems).find_map(|one| one.figures.pending);
    notes.extend(durable.map(|count| format!("Durable messages of W6: {count}.")));
    if !versions.is_empty() {
        notes.push(format!("Versions: {}.", versions.join(", ")));
    }
    notes.extend(report.left_out.iter().map(|LeftOut { system, reason }| format!("{system} is left out: {reason}.")));
    notes.extend(report.fairness.iter().map(|fairness| format!("Fairness: {}.", table::fairness(fairness))));
    notes
}

fn growth(growth: &Growth) -> Section {
    let mut text = format!("Measured {}; medians of {} shuffled rounds.\n\n", growth.head, growth.rounds);
    let mut drawings = Vec::new();
    for curve in &growth.curves {
        let (file, verdict) = (format!("growth-{}.svg", curve.curve.name()), curve.verdict());
        text += &format!("![{verdict}]({DRAWINGS}/{file})\n\n{}\n{verdict}.\n\n", curve.table());
        drawings.push((file, lines::draw(curve)));
    }
    Section { name: "growth", text, drawings }
}

fn overload(overload: &Overload) -> Section {
    let mut text = format!("Measured {}; storms of {} s.\n\n{}", overload.head, overload.seconds, overload.tables());
    let missed = overload.missed();
    text += &match missed.is_empty() {
        true => "\nEvery bar was reached.\n".to_owned(),
        false => format!("\nBars missed: {}.\n", missed.join("; ")),
    };
    Section { name: "overload", text, drawings: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#""format": 1, "when": "2026-01-01T00:00:00Z", "routers": 1,
        "machine": {"cpu": "Fast", "cores": 2, "kernel": "6"}"#;

    #[test]
    fn works_become_a_table_and_drawings() {
        let one = |name: &str, rate: f64| {
            format!(
                r#"{{"name": "{name}", "version": "7", "figures": {{}}, "rounds": [],
                "ratios": {{"rate": {{"median": {rate}, "min": {rate}, "max": {rate}}}}}}}"#
            )
        };
        let (turno, redis) = (one("turno", 0.8), one("redis", 0.4));
        let text = format!(
            r#"{{{HEAD}, "runs": 7, "seed": 1, "works":
            [{{"work": "W2", "about": "", "budgets": [], "systems": [{turno}, {redis}]}}]}}"#
        );
        let Section { name, text, drawings } = section(&text).unwrap();
        assert_eq!(name, "works");
        assert!(
            text.starts_with("Measured 2026-01-01T00:00:00Z on 2 cores of Fast, Linux 6; Turno with 1 router; medi")
        );
        assert!(text.contains("| W2 | rate / relay's | ≥ 0.7 | **0.80** | 0.40 |"), "{text}");
        assert!(text.contains("Versions: redis 7."), "{text}");
        let files: Vec<&str> = drawings.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(files, ["w2-rate.svg"]);
    }

    /// A line that is Turno's alone stands in the table; there is nothing to draw beside it.
    #[test]
    fn a_line_without_a_chart_is_a_row() {
        let text = format!(
            r#"{{{HEAD}, "runs": 7, "seed": 1, "works": [{{"work": "W4", "about": "", "budgets": [], "systems": [
            {{"name": "turno", "version": "7", "figures": {{}}, "rounds": [],
            "ratios": {{"plain_log": {{"median": 0.7, "min": 0.6, "max": 0.8}}}}}}]}}]}}"#
        );
        let Section { text, drawings, .. } = section(&text).unwrap();
        assert!(text.contains("| W4 | rate / plain log's | ≥ 0.6 | **0.70** |"), "{text}");
        assert!(drawings.is_empty());
    }

    #[test]
    fn other_files_are_refused() {
        assert!(section("{}").is_err());
        assert!(section("works").is_err());
    }

    /// The page in the tree has a place for every section.
    #[test]
    fn the_page_has_its_markers() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explanation").join(PAGE);
        let page = fs::read_to_string(path).unwrap();
        for name in ["works", "growth", "overload"] {
            assert!(page::fill(&page, name, "").is_ok(), "{name}");
        }
    }
}
