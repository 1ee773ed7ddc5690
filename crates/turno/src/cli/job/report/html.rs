//! HTML output in which all text from outside is escaped.

use std::fmt::{self, Write as _};

use crate::cli::shown::escaped;

/// A page that grows.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup, as it stands in the program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Whatever somebody said, within an element or a quoted attribute: no markup, and nothing hidden.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for letter in escaped(text).chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// A number, or several for a drawing.
    pub(super) fn number(&mut self, number: impl Number) -> &mut Self {
        // A String takes everything.
        let _ = write!(self.0, "{}", Shown(number));
        self
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A value that is written with digits.
pub(super) trait Number {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl Number for u32 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Number for u64 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Number for usize {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// With at most one digit behind the point: a tenth of a unit of a drawing cannot be seen.
impl Number for f64 {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self * 10.0).round();
        if tenths % 10.0 == 0.0 { write!(f, "{:.0}", tenths / 10.0) } else { write!(f, "{:.1}", tenths / 10.0) }
    }
}

struct Shown<N>(N);

impl<N: Number> fmt::Display for Shown<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_text() {
        let mut html = Html::default();
        html.raw("<p title=\"")
            .text("\"><script>'&\u{0}\u{202e}\n")
            .raw("\">")
            .number(7_u32)
            .number(0.04)
            .number(-1.25);
        assert_eq!(html.finish(), "<p title=\"&quot;&gt;&lt;script&gt;&#39;&amp;\\x00\\u{202e}\\n\">70-1.3");
    }
}
