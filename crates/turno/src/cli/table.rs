//! Tables for people: columns without borders, so that `awk` works too.

use std::borrow::Cow;

use turno_broker::config::nearest;
use turno_proto::model::archive::OutputStream;
use turno_proto::model::job::{JobId, JobState, TaskNumbers, TaskState};
use turno_proto::model::link::view::LinkState;
use turno_proto::model::ring::Sid;
use turno_proto::model::view::{WorkerKind, WorkerState};
use turno_proto::model::{Code, Moment, Seconds, Slots, TaskId, Token, WorkerId};

use super::error::Failure;
use super::shown::{Page, escaped};
use super::time::{Clock, short};
use super::width;

/// Stands where a cell would be empty.
const LACKS: &str = "-";
/// Slots without a limit.
const UNLIMITED: &str = "unlimited";
/// Units of quantities: shares, sizes and durations.
const UNITS: &[&str] = &["%", "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "us", "ms", "s", "m", "h", "d"];
/// Blanks between two columns.
const BETWEEN: &str = "  ";
/// A last column is not cut shorter than this, however narrow the terminal.
const LAST_MIN: usize = 12;

/// One column of a kind of row. Its key is the row's key in JSON, so that `--columns` means the same in both.
pub(crate) struct Column<R> {
    pub(crate) key: &'static str,
    /// The heading, where the words of the key are not what people would read there.
    heading: Option<&'static str>,
    /// Shown only when asked for: by `-o wide` or by name.
    pub(crate) wide: bool,
    pub(crate) cell: fn(&R, &Clock) -> String,
}

impl<R> Column<R> {
    /// A column as `columns!` describes it.
    pub(crate) const fn new(
        key: &'static str,
        heading: Option<&'static str>,
        wide: bool,
        cell: fn(&R, &Clock) -> String,
    ) -> Self {
        Self { key, heading, wide, cell }
    }

    /// The words over the column. Durations and moments are printed with their units, so the units of JSON are left out.
    pub(crate) fn heading(&self) -> String {
        let words = || self.key.strip_suffix("_seconds").or_else(|| self.key.strip_suffix("_at")).unwrap_or(self.key);
        self.heading.map_or_else(|| words().replace('_', " ").to_uppercase(), ToOwned::to_owned)
    }

    /// Whether `typed`, in lower case, means this column: its key, or its heading as it is or with underscores.
    fn is_called(&self, typed: &str) -> bool {
        self.key == typed || self.heading().to_lowercase() == typed.replace('_', " ")
    }
}

/// The columns of a kind of row, each with a semicolon: the name of a field, or the key of a column with what is in its
/// cells. Those with `wide` in front are shown only when asked for; `as` gives a column a heading.
macro_rules! columns {
    (@heading) => { None };
    (@heading $heading:literal) => { Some($heading) };
    (@[$($done:expr,)*]) => {
        &[$($done),*]
    };
    (@[$($done:expr,)*] wide $key:ident $(as $heading:literal)? = $cell:expr; $($rest:tt)*) => {
        columns![@[$($done,)*
            $crate::cli::table::Column::new(stringify!($key), columns![@heading $($heading)?], true, $cell),
        ] $($rest)*]
    };
    (@[$($done:expr,)*] wide $field:ident $(as $heading:literal)?; $($rest:tt)*) => {
        columns![@[$($done,)*] wide $field $(as $heading)? = |row, clock| row.$field.cell(clock); $($rest)*]
    };
    (@[$($done:expr,)*] $key:ident $(as $heading:literal)? = $cell:expr; $($rest:tt)*) => {
        columns![@[$($done,)*
            $crate::cli::table::Column::new(stringify!($key), columns![@heading $($heading)?], false, $cell),
        ] $($rest)*]
    };
    (@[$($done:expr,)*] $field:ident $(as $heading:literal)?; $($rest:tt)*) => {
        columns![@[$($done,)*] $field $(as $heading)? = |row, clock| row.$field.cell(clock); $($rest)*]
    };
    ($($all:tt)*) => {{
        #[allow(unused_imports, reason = "columns may all have cells of their own")]
        use $crate::cli::table::Cell as _;
        columns![@[] $($all)*]
    }};
}
pub(crate) use columns;

/// A value as it stands in a column.
pub(crate) trait Cell {
    fn cell(&self, clock: &Clock) -> String;
}

macro_rules! shown_as_text {
    ($($kind:ty)*) => { $(
        impl Cell for $kind {
            fn cell(&self, _: &Clock) -> String {
                self.to_string()
            }
        }
    )* };
}

shown_as_text! {
    String u8 u16 u32 u64 i32
    Slots WorkerId Token JobId TaskId TaskNumbers Sid
    WorkerKind WorkerState LinkState JobState TaskState OutputStream
}

impl Cell for bool {
    fn cell(&self, _: &Clock) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl Cell for Moment {
    fn cell(&self, clock: &Clock) -> String {
        clock.cell(*self)
    }
}

impl Cell for Seconds {
    fn cell(&self, _: &Clock) -> String {
        short(self.duration())
    }
}

impl<T: Cell> Cell for Option<T> {
    fn cell(&self, clock: &Clock) -> String {
        self.as_ref().map(|value| value.cell(clock)).unwrap_or_default()
    }
}

impl Cell for Vec<String> {
    fn cell(&self, _: &Clock) -> String {
        self.join(",")
    }
}

/// Something that is listed.
pub(crate) trait Row: Sized + 'static {
    /// Every column, in order.
    const COLUMNS: &'static [Column<Self>];

    /// The name of this row for other commands.
    fn name(&self) -> String;
}

/// The columns to show: those asked for by name, or all, or the usual ones.
pub(crate) fn choose<R: Row>(asked: &[String], wide: bool) -> Result<Vec<&'static Column<R>>, Failure> {
    if asked.is_empty() {
        return Ok(R::COLUMNS.iter().filter(|column| wide || !column.wide).collect());
    }
    asked.iter().map(|name| find(name)).collect()
}

fn find<R: Row>(name: &str) -> Result<&'static Column<R>, Failure> {
    let typed = name.trim().to_lowercase();
    let keys = || R::COLUMNS.iter().map(|column| column.key);
    R::COLUMNS.iter().find(|column| column.is_called(&typed)).ok_or_else(|| {
        let what = format!("unknown column {name:?}");
        let fix = match nearest(&typed, keys()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("choose from {}", keys().collect::<Vec<_>>().join(",")),
        };
        Failure::new(Code::BadUsage, what).why("--columns takes columns of this listing").fix(fix)
    })
}

/// The listing with its headings. Columns of quantities are flush right. With `room`, a last column of text is cut where
/// the table would be wider than that.
pub(crate) fn render<R: Row>(columns: &[&Column<R>], rows: &[R], clock: &Clock, room: Option<usize>) -> Page {
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|column| column.heading()).collect()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|column| filled((column.cell)(row, clock))).collect()));
    let flush_right: Vec<bool> = (0..columns.len())
        .map(|place| {
            let mut cells =
                lines.iter().skip(1).map(|line| line[place].as_str()).filter(|cell| *cell != LACKS).peekable();
            cells.peek().is_some() && cells.all(is_quantity)
        })
        .collect();
    aligned(&lines, &flush_right, room)
}

/// Cells below each other, each escaped before it is measured, two blanks between them; some columns flush right.
pub(crate) fn layout(lines: &[Vec<String>], flush_right: &[bool]) -> Page {
    aligned(lines, flush_right, None)
}

fn aligned(lines: &[Vec<String>], flush_right: &[bool], room: Option<usize>) -> Page {
    let mut lines: Vec<Vec<Cow<'_, str>>> =
        lines.iter().map(|line| line.iter().map(|cell| escaped(cell)).collect()).collect();
    let mut widths: Vec<usize> = (0..flush_right.len())
        .map(|place| lines.iter().map(|line| width::of(&line[place])).max().unwrap_or_default())
        .collect();
    if let (Some(room), Some((last, before)), Some(false)) = (room, widths.split_last_mut(), flush_right.last()) {
        let left = room.saturating_sub(before.iter().map(|width| width + BETWEEN.len()).sum());
        *last = (*last).min(left.max(LAST_MIN));
        for cell in lines.iter_mut().filter_map(|line| line.last_mut()) {
            *cell = Cow::Owned(width::cut(cell, *last).into_owned());
        }
    }
    let mut page = Page::new();
    for line in &lines {
        let mut out = String::new();
        for (place, cell) in line.iter().enumerate() {
            if place > 0 {
                out.push_str(BETWEEN);
            }
            let pad = " ".repeat(widths[place] - width::of(cell));
            if flush_right[place] {
                out.push_str(&pad);
                out.push_str(cell);
            } else {
                out.push_str(cell);
                out.push_str(&pad);
            }
        }
        page.line(out.trim_end());
    }
    page
}

/// Things one below the other: their names on the left, what they are on the right.
pub(crate) fn facts(facts: &[(&str, String)]) -> Page {
    let lines: Vec<Vec<String>> = facts.iter().map(|(name, text)| vec![(*name).to_owned(), text.clone()]).collect();
    layout(&lines, &[false, false])
}

/// A number, a share, a size or a duration.
fn is_quantity(cell: &str) -> bool {
    if cell == UNLIMITED || cell.parse::<f64>().is_ok() {
        return true;
    }
    let mut rest = cell.strip_prefix('+').unwrap_or(cell);
    while let Some(end) = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').filter(|end| *end > 0) {
        let after = &rest[end..];
        let unit_end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        if !UNITS.contains(&&after[..unit_end]) {
            return false;
        }
        rest = &after[unit_end..];
        if rest.is_empty() {
            return true;
        }
    }
    false
}

/// A cell that is never empty, so that columns can be counted.
fn filled(cell: String) -> String {
    if cell.is_empty() { LACKS.to_owned() } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::time::TimeStyle;

    struct Fruit {
        name: &'static str,
        count: u32,
        colour: Option<String>,
    }

    impl Row for Fruit {
        const COLUMNS: &'static [Column<Self>] = columns![
            name = |fruit, _| fruit.name.to_owned();
            count;
            wide colour;
        ];

        fn name(&self) -> String {
            self.name.to_owned()
        }
    }

    fn shown(asked: &[&str], wide: bool) -> Result<Page, Failure> {
        let yellow = Some("yellow".to_owned());
        let rows = [Fruit { name: "fig", count: 7, colour: None }, Fruit { name: "mango", count: 120, colour: yellow }];
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        let clock = Clock::new(TimeStyle::Utc);
        Ok(render(&choose::<Fruit>(&asked, wide)?, &rows, &clock, None))
    }

    #[test]
    fn columns_line_up_and_are_never_empty() {
        assert_eq!(shown(&[], false).unwrap(), "NAME   COUNT\nfig        7\nmango    120\n");
        assert_eq!(shown(&[], true).unwrap(), "NAME   COUNT  COLOUR\nfig        7  -\nmango    120  yellow\n");
    }

    #[test]
    fn headings_are_the_words_of_the_key_without_its_unit() {
        let heading = |key, given| Column::<Fruit>::new(key, given, false, |_, _| String::new()).heading();
        let table = [("in_flight", "IN FLIGHT"), ("oldest_seconds", "OLDEST"), ("submitted_at", "SUBMITTED")];
        for (key, expected) in table {
            assert_eq!(heading(key, None), expected);
        }
        assert_eq!(heading("seconds", Some("ELAPSED")), "ELAPSED");
        let column = Column::<Fruit>::new("oldest_seconds", Some("OLDEST"), false, |_, _| String::new());
        assert!(column.is_called("oldest_seconds") && column.is_called("oldest") && !column.is_called("old"));
    }

    /// A wide character takes two columns, a combining mark none.
    #[test]
    fn columns_line_up_below_wide_characters() {
        let cells = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let lines = [cells("NAME", "READY"), cells("キュー", "1"), cells("cafe\u{301}", "20"), cells("queue", "3")];
        let expected = "NAME    READY\nキュー      1\ncafe\u{301}       20\nqueue       3\n";
        assert_eq!(layout(&lines, &[false, true]), expected);
    }

    #[test]
    fn a_last_column_of_text_is_cut_to_the_terminal() {
        let cells = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let lines = [cells("ID", "FAILURE"), cells("7", "no such file or directory"), cells("8", "exit 3")];
        let expected = "ID  FAILURE\n7   no such file or…\n8   exit 3\n";
        assert_eq!(aligned(&lines, &[false, false], Some(20)), expected);
        assert_eq!(*aligned(&lines, &[false, false], Some(29)), *layout(&lines, &[false, false]), "all of it fits");
        let narrow = aligned(&lines, &[false, false], Some(0));
        assert_eq!(narrow, "ID  FAILURE\n7   no such fil…\n8   exit 3\n", "some of it is always shown");
    }

    #[test]
    fn quantities_are_flush_right() {
        for cell in ["7", "-3", "0.5", "33%", "512B", "1.50KiB", "58ms", "1m30s", "+5.0s", "3d4h", "unlimited"] {
            assert!(is_quantity(cell), "{cell}");
        }
        for cell in ["", "-", "w1", "7 workers", "5x", "s", "22334f3d", "10.0.0.1:4711", "1.", "ms5"] {
            assert_eq!(is_quantity(cell), cell == "1.", "{cell}");
        }
    }

    /// A cell with a line break is one cell of one line, and what is escaped counts with its full width.
    #[test]
    fn cells_cannot_leave_their_place() {
        let cells = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let lines = [cells("NAME", "QUEUE"), cells("a\nb", "q\x1b[2J"), cells("longer", "\u{202e}q")];
        let expected = "NAME    QUEUE\na\\nb    q\\x1b[2J\nlonger  \\u{202e}q\n";
        assert_eq!(layout(&lines, &[false, false]), expected);
    }

    #[test]
    fn cells_by_kind() {
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        let moment = Moment::from_unix_ms(1_794_743_910_000);
        let cells = [
            (true.cell(&clock), "yes"),
            (false.cell(&clock), "no"),
            (moment.cell(&clock), "1m30s"),
            (None::<Moment>.cell(&clock), ""),
            (Seconds::from_millis(61_000).cell(&clock), "1m1s"),
            (vec!["a".to_owned(), "b".to_owned()].cell(&clock), "a,b"),
            (Slots::Unlimited.cell(&clock), "unlimited"),
            (Some(WorkerState::Draining).cell(&clock), "draining"),
        ];
        for (cell, expected) in cells {
            assert_eq!(cell, expected);
        }
    }

    #[test]
    fn columns_are_chosen_and_ordered_by_name() {
        assert_eq!(shown(&["colour", "NAME"], false).unwrap(), "COLOUR  NAME\n-       fig\nyellow  mango\n");
        let failure = shown(&["colur"], false).unwrap_err();
        assert_eq!(failure.exit(), 2);
        assert!(failure.render(crate::cli::paint::Paint::plain()).contains("did you mean colour?"));
    }
}
