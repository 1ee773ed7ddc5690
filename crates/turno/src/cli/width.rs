//! The columns that a text takes on a terminal: two for most East Asian characters, none for combining marks.

use std::borrow::Cow;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthStr as _;

/// The width of a terminal that does not report one.
const USUAL: usize = 80;

/// Stands at the end of a text that was cut.
const ELLIPSIS: &str = "…";

/// Columns of a text that is already escaped.
pub(crate) fn of(text: &str) -> usize {
    text.width()
}

/// The beginning of the text that fits into `max` columns.
pub(crate) fn head(text: &str, max: usize) -> &str {
    let ends = text.char_indices().map(|(start, letter)| start + letter.len_utf8());
    let end = ends.take_while(|end| of(&text[..*end]) <= max).last();
    &text[..end.unwrap_or_default()]
}

/// The text if it fits into `max` columns, otherwise its beginning with an ellipsis.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if of(text) <= max {
        return Cow::Borrowed(text);
    }
    match max.checked_sub(of(ELLIPSIS)) {
        Some(room) => Cow::Owned(format!("{}{ELLIPSIS}", head(text, room))),
        None => Cow::Borrowed(""),
    }
}

/// Columns of the terminal that a file descriptor leads to.
pub(crate) fn terminal(descriptor: impl AsFd) -> usize {
    let reported = tcgetwinsize(descriptor).map_or(0, |size| size.ws_col);
    if reported == 0 { USUAL } else { reported.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_not_characters() {
        let table = [("", 0), ("queue", 5), ("キュー", 6), ("e\u{301}", 1), ("🙂", 2), ("…", 1)];
        for (text, columns) in table {
            assert_eq!(of(text), columns, "{text}");
        }
    }

    #[test]
    fn a_cut_text_fits_and_shows_that_it_was_cut() {
        let table = [("queue", 5, "queue"), ("queue", 4, "que…"), ("キュー", 5, "キュ…"), ("キュー", 4, "キ…")];
        for (text, max, shown) in table {
            assert_eq!(cut(text, max), shown);
        }
        for max in 0..8 {
            assert!(of(&cut("aキb🙂e\u{301}", max)) <= max && of(head("aキb🙂e\u{301}", max)) <= max, "{max}");
        }
        assert_eq!(head("e\u{301}e\u{301}", 1), "e\u{301}", "a mark stays with its letter");
    }
}
