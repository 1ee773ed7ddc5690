//! A work as bars: each system's figure beside the limit's, with the budget as a line.

use super::svg::{Anchor, Ink, Svg};
use crate::budget::{Budget, Chart};
use crate::report::{Bound, WorkResult};
use crate::spread::{Spread, digits};
use crate::system::System;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 84.0;
const ROW: f64 = 30.0;
const BAR: f64 = 18.0;
/// A bar of more than so many budgets is cut, or the others could not be told apart.
const BUDGETS_MAX: f64 = 6.0;
/// The gap in a bar that is cut.
const GAP: f64 = 4.0;

/// Draws it; `None` if the work has no such figure.
pub(super) fn draw(budget: &Budget, chart: &Chart, work: &WorkResult) -> Option<String> {
    let mut rows: Vec<(&str, Spread)> =
        work.systems.iter().filter_map(|system| Some((system.name.as_str(), (budget.of)(system)?))).collect();
    if rows.is_empty() {
        return None;
    }
    rows.sort_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    let (word, bound) = match budget.bound {
        Bound::AtMost(most) => ("at most", most),
        Bound::AtLeast(least) => {
            rows.reverse();
            ("at least", least)
        }
    };
    let most = rows.iter().map(|(_, spread)| spread.median).fold(bound * 1.15, f64::max).min(bound * BUDGETS_MAX);
    let height = TOP + ROW * rows.len() as f64 + 34.0;
    let bottom = height - 26.0;
    let place = |value: f64| LEFT + value.min(most) / most * (WIDTH - LEFT - RIGHT);
    let mut svg = Svg::new(WIDTH, height, chart.title);
    svg.bold((16.0, 28.0), 16, chart.title);
    svg.text((16.0, 48.0), 12, Ink::Soft, Anchor::Start, chart.subtitle);
    svg.line((LEFT, TOP - 6.0), (LEFT, bottom), Ink::Soft, 1.0, false);
    let line = place(bound);
    svg.text((line, TOP - 12.0), 12, Ink::Budget, Anchor::Middle, &format!("Turno {word} {}", digits(bound)));
    for (at, (system, spread)) in rows.iter().enumerate() {
        let middle = TOP + ROW * (at as f64 + 0.5);
        let ours = *system == System::Turno.name();
        let ink = if ours { Ink::Strong } else { Ink::Soft };
        svg.text((LEFT - 10.0, middle + 4.0), 13, ink, Anchor::End, system);
        let (end, top) = (place(spread.median), middle - BAR / 2.0);
        svg.rect((LEFT, top), ((end - LEFT).max(1.0), BAR), if ours { Ink::Ours } else { Ink::Other });
        if spread.median > most {
            svg.rect((end - 5.0 * GAP, top), (GAP, BAR), Ink::Ground);
        }
        let text = spread.to_string();
        // Not on the line of the budget.
        let beyond = if end < line && line - end < 8.0 + width(&text) { line } else { end };
        svg.text((beyond + 8.0, middle + 4.0), 12, Ink::Strong, Anchor::Start, &text);
    }
    // Over the bars.
    svg.line((line, TOP - 6.0), (line, bottom), Ink::Budget, 1.5, true);
    Some(svg.finish())
}

/// How wide a text of that size is, or a little less wide than this.
fn width(text: &str) -> f64 {
    const CHARACTER: f64 = 7.0;
    text.chars().count() as f64 * CHARACTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget;
    use crate::works::Work;

    fn rates(rates: &[(&str, f64)]) -> WorkResult {
        let one = |(name, rate): &(&str, f64)| {
            serde_json::json!({"name": name, "version": "1", "figures": {}, "rounds": [],
                "ratios": {"rate": Spread::flat(*rate), "cpu": Spread::flat(*rate)}})
        };
        let systems: Vec<serde_json::Value> = rates.iter().map(one).collect();
        let work = serde_json::json!({"work": "W2", "about": "", "systems": systems, "budgets": []});
        serde_json::from_value(work).unwrap()
    }

    fn drawn(key: &str, work: &WorkResult) -> Option<String> {
        let lines = budget::of(Work::W2).iter().filter_map(|budget| Some((budget, budget.chart.as_ref()?)));
        let (budget, chart) = lines.into_iter().find(|(_, chart)| chart.key == key).unwrap();
        draw(budget, chart, work)
    }

    #[test]
    fn the_best_system_stands_on_top() {
        let work = rates(&[("redis", 0.38), ("turno", 0.81)]);
        let text = drawn("rate", &work).unwrap();
        assert!(text.find(">turno<") < text.find(">redis<"), "{text}");
        assert!(text.contains("Turno at least 0.70"));
        let text = drawn("cpu", &work).unwrap();
        assert!(text.find(">redis<") < text.find(">turno<"), "{text}");
        assert!(text.contains("Turno at most 1.40"));
    }

    #[test]
    fn a_bar_that_is_far_too_long_is_cut() {
        let gaps = |most| {
            let text = drawn("cpu", &rates(&[("turno", 1.2), ("rabbitmq", most)])).unwrap();
            // The ground of the drawing is one, too.
            text.matches(r#"<rect class="ground""#).count() - 1
        };
        assert_eq!((gaps(8.0), gaps(51.8)), (0, 1));
    }

    #[test]
    fn a_work_without_the_figure_has_no_chart() {
        assert_eq!(drawn("p99", &rates(&[("turno", 1.0)])), None);
    }
}
