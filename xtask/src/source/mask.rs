//! Splits Rust text into code and comments, and blanks what stands between quotes, so that no rule
//! stumbles over a forbidden word in a message or in a sample.

use super::Line;

/// The scanner's state: the construct that it is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    LineComment,
    /// Block comments nest.
    BlockComment {
        depth: usize,
    },
    /// `hashes` is nothing for strings in which a backslash escapes.
    Text {
        hashes: Option<usize>,
    },
}

pub(super) fn mask(text: &str) -> Vec<Line> {
    let mut scanner = Scanner {
        chars: text.chars().collect(),
        at: 0,
        inside: Inside::Code,
        lines: Vec::new(),
        line: Line::default(),
    };
    scanner.run();
    scanner.lines
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    inside: Inside,
    lines: Vec<Line>,
    line: Line,
}

impl Scanner {
    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            if c == '\n' {
                if self.inside == Inside::LineComment {
                    self.inside = Inside::Code;
                }
                self.lines.push(std::mem::take(&mut self.line));
                self.at += 1;
                continue;
            }
            match self.inside {
                Inside::Code => self.code(c),
                Inside::LineComment => self.comment(1),
                Inside::BlockComment { depth } => self.block_comment(depth),
                Inside::Text { hashes } => self.text(c, hashes),
            }
        }
        if !self.line.code.is_empty() || !self.line.comment.is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn code(&mut self, c: char) {
        match (c, self.peek(1)) {
            ('/', Some('/')) => {
                self.inside = Inside::LineComment;
                self.comment(2);
            }
            ('/', Some('*')) => {
                self.inside = Inside::BlockComment { depth: 1 };
                self.comment(2);
            }
            ('"', _) => {
                self.inside = Inside::Text { hashes: None };
                self.keep(1);
            }
            ('r', Some('"' | '#')) if !self.follows_name() => self.raw_text(),
            ('\'', _) => self.quote(),
            _ => self.keep(1),
        }
    }

    /// `r"…"`, `r#"…"#` open a raw string; `r#name` is only a name.
    fn raw_text(&mut self) {
        let hashes = (1..).take_while(|&n| self.peek(n) == Some('#')).count();
        if self.peek(hashes + 1) == Some('"') {
            self.inside = Inside::Text { hashes: Some(hashes) };
            self.keep(hashes + 2);
        } else {
            self.keep(hashes + 1);
        }
    }

    /// A character literal is blanked, a lifetime is kept.
    fn quote(&mut self) {
        let len = match (self.peek(1), self.peek(2)) {
            // The escaped character itself may be a quote, so the search begins behind it.
            (Some('\\'), Some(_)) => (3..).find(|&n| matches!(self.peek(n), Some('\'') | None)),
            (Some(_), Some('\'')) => Some(2),
            _ => None,
        };
        match len {
            Some(last) => {
                self.line.code.push('\'');
                self.blank(last.saturating_sub(1));
                self.line.code.push('\'');
                self.at += 2;
            }
            None => self.keep(1),
        }
    }

    /// Whether the character before this one belongs to a name; `br"…"` and `cr"…"` do not count.
    fn follows_name(&self) -> bool {
        let before = |n: usize| self.at.checked_sub(n).map(|at| self.chars[at]);
        let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match before(1) {
            Some('b' | 'c') => is_name(before(2)),
            other => is_name(other),
        }
    }

    fn block_comment(&mut self, depth: usize) {
        match (self.peek(0), self.peek(1)) {
            (Some('*'), Some('/')) => {
                self.comment(2);
                self.inside = match depth {
                    1 => Inside::Code,
                    _ => Inside::BlockComment { depth: depth - 1 },
                };
            }
            (Some('/'), Some('*')) => {
                self.comment(2);
                self.inside = Inside::BlockComment { depth: depth + 1 };
            }
            _ => self.comment(1),
        }
    }

    fn text(&mut self, c: char, hashes: Option<usize>) {
        match (c, hashes) {
            // A backslash at the end of a line hides nothing but the line break.
            ('\\', None) if self.peek(1) != Some('\n') => self.blank(2),
            ('"', None) => {
                self.inside = Inside::Code;
                self.keep(1);
            }
            ('"', Some(hashes)) if (1..=hashes).all(|n| self.peek(n) == Some('#')) => {
                self.inside = Inside::Code;
                self.keep(hashes + 1);
            }
            _ => self.blank(1),
        }
    }

    fn keep(&mut self, count: usize) {
        for _ in 0..count {
            self.line.code.extend(self.peek(0));
            self.at += 1;
        }
    }

    fn blank(&mut self, count: usize) {
        self.line.code.extend(std::iter::repeat_n(' ', count));
        self.at += count;
    }

    fn comment(&mut self, count: usize) {
        for _ in 0..count {
            self.line.comment.extend(self.peek(0));
            self.line.code.push(' ');
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        let trimmed = |line: &Line| line.code.split_whitespace().collect::<Vec<_>>().join(" ");
        mask(text).iter().map(trimmed).collect()
    }

    #[test]
    fn comments_go_to_their_own_column() {
        let lines = mask("a(); // b()\n/* c() /* d() */ e() */ f();\n");
        assert_eq!(lines[0].code.trim(), "a();");
        assert_eq!(lines[0].comment, "// b()");
        assert_eq!(lines[1].code.trim(), "f();");
        assert_eq!(lines[1].comment, "/* c() /* d() */ e() */");
    }

    #[test]
    fn strings_are_blanked() {
        assert_eq!(code(r#"a("x // y \" z", b);"#), [r#"a(" ", b);"#]);
        assert_eq!(code("r#\"a \" b\"#; c"), ["r#\" \"#; c"]);
        assert_eq!(code("br\"x\\\"; c"), ["br\" \"; c"]);
        assert_eq!(code("\"a\\\nb\"; c"), ["\"", "\"; c"]);
        assert_eq!(code("r#type; bar"), ["r#type; bar"]);
    }

    #[test]
    fn characters_are_blanked_and_lifetimes_kept() {
        assert_eq!(code("f('\"', b'{', '\\'', '\\u{7d}'); g"), ["f(' ', b' ', ' ', ' '); g"]);
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), ["fn f<'a>(x: &'a str) {}"]);
    }

    #[test]
    fn lines_are_counted_as_editors_do() {
        assert_eq!(mask("").len(), 0);
        assert_eq!(mask("a\n\nb").len(), 3);
        assert_eq!(mask("a\n\nb\n").len(), 3);
    }
}
