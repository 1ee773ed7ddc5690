//! Growth as lines: how many times the cost at the smallest size, over a logarithmic axis of sizes.

use super::svg::{Anchor, Ink, Svg};
use crate::growth::curve::{Curve, Judged};
use crate::growth::figures::{CurveResult, FLAT_WITHIN, Point};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 346.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 68.0;

/// Draws one curve: what is judged, with the microseconds it comes from below.
pub(super) fn draw(result: &CurveResult) -> String {
    let title = title(result.curve);
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    svg.bold((16.0, 28.0), 16, title);
    svg.text((16.0, 48.0), 12, Ink::Soft, Anchor::Start, subtitle(result.curve));
    let most = result.points.iter().map(|point| point.judged.median).fold(FLAT_WITHIN, f64::max);
    let scale = Scale::of(&result.points, most);
    for step in scale.steps() {
        let y = scale.y(step);
        svg.line((LEFT, y), (WIDTH - RIGHT, y), Ink::Faint, 1.0, false);
        svg.text((LEFT - 8.0, y + 4.0), 11, Ink::Soft, Anchor::End, &label(step));
    }
    for point in &result.points {
        let (x, below) = (scale.x(point.size), HEIGHT - BOTTOM);
        svg.text((x, below + 18.0), 12, Ink::Strong, Anchor::Middle, &short(point.size));
        svg.text((x, below + 34.0), 11, Ink::Soft, Anchor::Middle, &format!("{} us", few(point.turno_us)));
    }
    svg.text((LEFT - 8.0, HEIGHT - BOTTOM + 34.0), 11, Ink::Soft, Anchor::End, "CPU");
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    svg.text((middle, HEIGHT - 12.0), 12, Ink::Soft, Anchor::Middle, result.curve.axis());
    let bar = scale.y(FLAT_WITHIN);
    svg.line((LEFT, bar), (WIDTH - RIGHT, bar), Ink::Budget, 1.5, true);
    svg.text((WIDTH - RIGHT + 8.0, bar + 4.0), 12, Ink::Budget, Anchor::Start, &format!("bar {FLAT_WITHIN}"));
    let places: Vec<(f64, f64)> =
        result.points.iter().map(|point| (scale.x(point.size), scale.y(point.judged.median))).collect();
    svg.path(&places, Ink::Ours);
    for point in &result.points {
        let at = (scale.x(point.size), scale.y(point.judged.median));
        // Not on the line of the bar.
        let y = if (at.1 - 14.0 - bar).abs() < 10.0 { at.1 + 20.0 } else { at.1 - 10.0 };
        svg.text((at.0, y), 11, Ink::Strong, Anchor::Middle, &format!("{:.2}", point.judged.median));
    }
    svg.finish()
}

const fn title(curve: Curve) -> &'static str {
    match curve {
        Curve::Workers => "Cost per request as workers become many",
        Curve::Queues => "Cost per request as queues become many",
        Curve::Waiting => "Cost per request as requests pile up",
        Curve::Bodies => "Cost per request as bodies become large",
    }
}

const fn subtitle(curve: Curve) -> &'static str {
    match curve.judged() {
        Judged::Alone => "broker CPU beside that at the smallest size; lower is better",
        Judged::BesideRelay => {
            "broker CPU beside that at the smallest size, divided by the same of a raw relay; lower is better"
        }
    }
}

/// Sizes and ratios to places.
struct Scale {
    first: f64,
    last: f64,
    most: f64,
    /// Ratios beyond a few are shown on a logarithmic axis too.
    steep: bool,
}

/// Beyond this a straight axis would flatten everything else.
const STEEP: f64 = 6.0;

impl Scale {
    fn of(points: &[Point], most: f64) -> Self {
        let log = |point: Option<&Point>| point.map_or(0.0, |point| (point.size as f64).log10());
        let (first, last) = (log(points.first()), log(points.last()));
        let steep = most > STEEP;
        let most = if steep { 10_f64.powf(most.log10().ceil()) } else { (most * 2.0).ceil() / 2.0 };
        Self { first, last: last.max(first + 1.0), most, steep }
    }

    fn x(&self, size: usize) -> f64 {
        let part = ((size as f64).log10() - self.first) / (self.last - self.first);
        LEFT + 24.0 + part * (WIDTH - LEFT - RIGHT - 48.0)
    }

    fn y(&self, ratio: f64) -> f64 {
        let part =
            if self.steep { (ratio.max(0.1) * 10.0).log10() / (self.most * 10.0).log10() } else { ratio / self.most };
        HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
    }

    fn steps(&self) -> Vec<f64> {
        let mut steps = Vec::new();
        let mut step = if self.steep { 0.1 } else { 0.0 };
        while step <= self.most * 1.001 {
            steps.push(step);
            step = if self.steep { step * 10.0 } else { step + if self.most > 3.0 { 1.0 } else { 0.5 } };
        }
        steps
    }
}

fn few(us: f64) -> String {
    if us >= 9.95 { format!("{us:.0}") } else { format!("{us:.1}") }
}

fn label(step: f64) -> String {
    if step >= 10.0 { format!("{step:.0}") } else { format!("{step:.1}") }
}

/// A size in few characters.
fn short(size: usize) -> String {
    match size {
        1_000_000.. if size.is_multiple_of(1_000_000) => format!("{}M", size / 1_000_000),
        1_024.. if size.is_multiple_of(1_024) => format!("{} Ki", size / 1_024),
        1_000.. if size.is_multiple_of(1_000) => format!("{}k", size / 1_000),
        _ => size.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Spread;

    fn point(size: usize, judged: f64) -> Point {
        let judged = Spread::flat(judged);
        Point { size, turno_us: 2.0, relay_us: None, ratio: judged.median, relay_ratio: None, judged }
    }

    #[test]
    fn sizes_stand_at_equal_distances() {
        let scale = Scale::of(&[point(10, 1.0), point(10_000, 1.1)], FLAT_WITHIN);
        let steps = [10, 100, 1_000, 10_000].map(|size| scale.x(size));
        assert!((steps[1] - steps[0] - (steps[3] - steps[2])).abs() < 0.01, "{steps:?}");
        assert!(scale.y(1.0) > scale.y(1.25), "more is further up");
    }

    #[test]
    fn a_steep_curve_stays_inside() {
        let result = CurveResult { curve: Curve::Queues, points: vec![point(10, 1.0), point(10_000, 448.0)] };
        let scale = Scale::of(&result.points, 448.0);
        assert!(scale.y(448.0) >= TOP && scale.y(1.0) <= HEIGHT - BOTTOM);
        assert_eq!(scale.steps().len(), 5);
        assert!(draw(&result).contains("448.00"));
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [10, 256, 1_000, 1_024, 65_536, 100_000, 1_000_000];
        assert_eq!(sizes.map(short), ["10", "256", "1k", "1 Ki", "64 Ki", "100k", "1M"]);
    }
}
