//! Text for people, escaped for a terminal.
//!
//! Peers choose names, addresses, labels, commands, failure texts and more, and a terminal obeys escape sequences wherever
//! they come from. [`escaped`] is the one function that makes such text harmless. [`Page`] is what [`super::output::Output`]
//! prints for people; it has no constructor that takes a text without escaping it, line breaks included.
//!
//! Not escaped is what the user asked to have byte for byte: bodies (`request`, `sub`, `topic recv`, `broadcast`), the
//! output of tasks (`job logs`, `submit --wait`), result files, and the stderr of a `work` program.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Deref;

/// The text with everything visible and in one line: control characters (C0, DEL, C1) as `\n`, `\t`, `\r` or `\x1b`;
/// marks of direction, characters without width, line separators, private and unassigned ones as `\u{202e}`. Everything
/// else stays, also a backslash: this is for reading, and JSON is for programs.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        let code = u32::from(letter);
        // A String takes everything.
        let _ = match letter {
            '\n' => shown.write_str("\\n"),
            '\r' => shown.write_str("\\r"),
            '\t' => shown.write_str("\\t"),
            letter if !is_hidden(letter) => shown.write_char(letter),
            _ if code <= 0xff => write!(shown, "\\x{code:02x}"),
            _ => write!(shown, "\\u{{{code:x}}}"),
        };
    }
    Cow::Owned(shown)
}

/// JSON with the same characters escaped by their code points. serde_json escapes C0 itself; the others are valid in JSON, but
/// control a terminal. They occur only inside strings, so the meaning of the text does not change.
pub(crate) fn json(text: String) -> String {
    let steers = |letter: char| !letter.is_ascii_control() && is_hidden(letter) || letter == '\x7f';
    if !text.contains(steers) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if steers(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Whether a reader would not see the character for what it is, or the terminal would act on it.
pub(crate) fn is_hidden(letter: char) -> bool {
    match letter {
        ' '..='~' => false,
        // Letters and marks that have no width or look like a blank, and yet count as printable.
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{3164}'
        | '\u{ffa0}'
        | '\u{e0100}'..='\u{e01ef}' => true,
        // Blanks of other widths are blanks; U+2028 and U+2029 begin lines.
        letter if letter.is_whitespace() && !letter.is_control() => matches!(letter, '\u{2028}' | '\u{2029}'),
        letter => !is_printable(letter),
    }
}

/// As std's tables have it: neither a control or format character, nor private, nor unassigned. Behind a letter, since a
/// mark that combines is printable only there.
fn is_printable(letter: char) -> bool {
    let mut bytes = [b'a', 0, 0, 0, 0];
    let length = 1 + letter.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
    text.escape_debug().nth(1) != Some('\\')
}

/// Lines for people, each of them escaped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    pub(crate) const fn new() -> Self {
        Self(String::new())
    }

    /// Adds a line. Whatever it holds, it stays one line.
    pub(crate) fn line(&mut self, line: &str) {
        self.0.push_str(&escaped(line));
        self.0.push('\n');
    }

    /// Adds a text of several lines, each behind `margin`; blanks stand for its tabs.
    pub(crate) fn block(&mut self, margin: &'static str, text: &str) {
        for line in text.lines() {
            self.line(&format!("{margin}{}", line.replace('\t', "    ")));
        }
    }

    /// Adds the lines of another page.
    pub(crate) fn append(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }
}

/// One line, its end left out or not; nothing if there is nothing in it.
impl From<&str> for Page {
    fn from(line: &str) -> Self {
        let mut page = Self::new();
        if !line.is_empty() {
            page.line(line.strip_suffix('\n').unwrap_or(line));
        }
        page
    }
}

impl From<String> for Page {
    fn from(line: String) -> Self {
        line.as_str().into()
    }
}

impl From<&String> for Page {
    fn from(line: &String) -> Self {
        line.as_str().into()
    }
}

/// One line each.
impl<T: Into<Self>> FromIterator<T> for Page {
    fn from_iter<I: IntoIterator<Item = T>>(lines: I) -> Self {
        let mut page = Self::new();
        lines.into_iter().for_each(|line| page.append(&line.into()));
        page
    }
}

impl Deref for Page {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
impl<T: AsRef<str>> PartialEq<T> for Page {
    fn eq(&self, other: &T) -> bool {
        self.0 == other.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_visible() {
        let table = [
            ("plain text, ünïcödé, 日本語 100 % \\ \"'", None),
            ("e\u{301} 👩 ⚠\u{fe0f} a\u{a0}b\u{3000}c", None),
            ("\x1b]52;c;aGk=\x07", Some("\\x1b]52;c;aGk=\\x07")),
            ("\x1b[2J\x1b[31m", Some("\\x1b[2J\\x1b[31m")),
            ("a\r\n\tb\0", Some("a\\r\\n\\tb\\x00")),
            ("\u{9b}31m\u{9d}\u{85}\x7f", Some("\\x9b31m\\x9d\\x85\\x7f")),
            ("\u{202a}\u{202e}\u{2066}\u{2069}", Some("\\u{202a}\\u{202e}\\u{2066}\\u{2069}")),
            ("\u{200e}\u{200f}\u{61c}", Some("\\u{200e}\\u{200f}\\u{61c}")),
            ("\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}", Some("\\u{200b}\\u{200d}\\u{2060}\\u{feff}\\xad")),
            ("\u{2028}\u{2029}", Some("\\u{2028}\\u{2029}")),
            ("\u{e0041}\u{e0100}\u{3164}", Some("\\u{e0041}\\u{e0100}\\u{3164}")),
            ("\u{e000}\u{fffe}\u{378}", Some("\\u{e000}\\u{fffe}\\u{378}")),
        ];
        for (text, expected) in table {
            assert_eq!(escaped(text), expected.unwrap_or(text), "{text:?}");
        }
    }

    /// Every character that Unicode calls a control or a mark of direction, and nothing that would let one through.
    #[test]
    fn nothing_hidden_is_left() {
        for letter in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = letter.to_string();
            let shown = escaped(&text);
            assert!(!shown.chars().any(char::is_control), "{letter:?}");
            assert!(!shown.contains(is_hidden), "{letter:?}");
            let quoted = json(serde_json::to_string(&text).unwrap());
            assert!(!quoted.contains(is_hidden), "{letter:?}");
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        }
    }

    /// Bytes go out as they are from these files alone: for what the user asked to have, for our own scripts and pages, and
    /// for drawings in colours. Each entry says why.
    #[test]
    fn only_these_files_write_bytes_as_they_are() {
        let doors = [
            "output.raw(",
            "stderr_raw(",
            "output::write(",
            "stdout().lock()",
            "stderr().lock()",
            "finish(io::stderr())",
        ];
        let expected = [
            ("bench/progress.rs", "figures over each other"),
            ("broadcast.rs", "the bodies of answers"),
            ("completions.rs", "our own script"),
            ("job/logs/print.rs", "the output of tasks"),
            ("job/report/mod.rs", "a page that escapes for itself"),
            ("job/submit/put.rs", "figures over each other"),
            ("logging.rs", "lines that are escaped field by field"),
            ("man.rs", "our own page"),
            ("output.rs", "the module itself"),
            ("progress/screen.rs", "bars, which escape the text below them"),
            ("request.rs", "the bodies of replies"),
            ("subscribe.rs", "the bodies of events"),
            ("topic.rs", "the bodies of events"),
            ("usage.rs", "help, and errors before there is an Output"),
            ("work/stderr.rs", "what the user's own program writes"),
        ];
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
        let mut found = Vec::new();
        let mut directories = vec![root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if !path.ends_with("shown.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    if doors.iter().any(|door| text.contains(door)) {
                        found.push(path.strip_prefix(&root).unwrap().display().to_string());
                    }
                }
            }
        }
        found.sort();
        assert_eq!(found, expected.map(|(file, _)| file));
    }

    #[test]
    fn lines_of_a_page_are_its_own() {
        let mut page = Page::from("name: a\nforged: line\n");
        page.line("output:");
        page.block("| ", "one\r\n\ttwo\x1b[0m\n");
        page.append(&["3", "4\n"].into_iter().collect());
        assert_eq!(page, "name: a\\nforged: line\noutput:\n| one\n|     two\\x1b[0m\n3\n4\n");
        assert_eq!(Page::from(String::new()), "");
    }
}
