//! A drawing: a few shapes and texts, written as SVG that reads on a light page and on a dark one.

use std::fmt::Write as _;

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A colour; each has a shade for light pages and one for dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// Titles and figures.
    Strong,
    /// Axes and labels.
    Soft,
    /// Lines of the grid.
    Faint,
    /// Turno.
    Ours,
    /// Everyone else.
    Other,
    /// The budget line.
    Budget,
    /// The base line.
    Ground,
}

impl Ink {
    const fn class(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Soft => "soft",
            Self::Faint => "faint",
            Self::Ours => "ours",
            Self::Other => "other",
            Self::Budget => "budget",
            Self::Ground => "ground",
        }
    }
}

/// Shades for light pages, then for dark ones. The ground is part of the drawing, so that it never stands on a colour
/// it was not made for.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
text,rect,circle{fill:currentColor}line,polyline{stroke:currentColor;fill:none}\
.ground{color:#fff}.strong{color:#1f2328}.soft{color:#59636e}.faint{color:#e4e7ea}\
.ours{color:#0b6e99}.other{color:#a3adb8}.budget{color:#b35900}\
@media (prefers-color-scheme:dark){.ground{color:#0d1117}.strong{color:#f0f3f6}.soft{color:#a5afba}\
.faint{color:#2a3038}.ours{color:#4cb5e0}.other{color:#626c78}.budget{color:#f0a04b}}";

/// A drawing in the making.
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    shapes: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: escaped(title), shapes: String::new() }
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), size: u32, ink: Ink, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (class, text) = (ink.class(), escaped(text));
        self.shape(&format!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    pub(super) fn bold(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        let text = escaped(text);
        self.shape(&format!(
            r#"<text class="strong" x="{x:.1}" y="{y:.1}" font-size="{size}" font-weight="600">{text}</text>"#
        ));
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), ink: Ink) {
        let class = ink.class();
        self.shape(&format!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#
        ));
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), ink: Ink, width: f64, dashed: bool) {
        let class = ink.class();
        let dash = if dashed { r#" stroke-dasharray="5 4""# } else { "" };
        self.shape(&format!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke-width="{width}"{dash}/>"#
        ));
    }

    /// A line through points, with a dot on each.
    pub(super) fn path(&mut self, points: &[(f64, f64)], ink: Ink) {
        let class = ink.class();
        let along: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.shape(&format!(r#"<polyline class="{class}" points="{}" stroke-width="2"/>"#, along.join(" ")));
        for (x, y) in points {
            self.shape(&format!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#));
        }
    }

    fn shape(&mut self, shape: &str) {
        self.shapes.push_str(shape);
        self.shapes.push('\n');
    }

    pub(super) fn finish(self) -> String {
        let Self { width, height, title, shapes } = self;
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}">"#
        );
        let _ = writeln!(text, "<title>{title}</title>\n<style>{STYLE}</style>");
        let _ = writeln!(text, r#"<rect class="ground" width="{width}" height="{height}" rx="6"/>"#);
        text + &shapes + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_break_out() {
        let mut svg = Svg::new(10.0, 10.0, "a \"b\" & c");
        svg.text((1.0, 2.0), 12, Ink::Strong, Anchor::Start, "x < y");
        let text = svg.finish();
        assert!(text.contains("x &lt; y") && text.contains("a &quot;b&quot; &amp; c"), "{text}");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }
}
